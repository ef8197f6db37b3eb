//! Reading slices of tokens: paths, generics and the ends of statements.

use proc_macro2::{Delimiter, Group, Spacing, TokenTree};
use syn::ext::IdentExt;

/// Words that are never the name of a function or a value.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "box", "break", "const", "continue", "dyn", "else", "enum", "extern", "false", "for", "if",
    "impl", "in", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "static", "struct", "trait", "true",
    "type", "unsafe", "where", "while", "yield",
];

pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// The word at `at`, without `r#`.
pub(crate) fn word(trees: &[TokenTree], at: usize) -> Option<String> {
    match trees.get(at)? {
        TokenTree::Ident(ident) => Some(ident.unraw().to_string()),
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    }
}

pub(crate) fn is_punct(trees: &[TokenTree], at: usize, wanted: char) -> bool {
    matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

pub(crate) fn is_path_separator(trees: &[TokenTree], at: usize) -> bool {
    let joint = matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.spacing() == Spacing::Joint);
    joint && is_punct(trees, at, ':') && is_punct(trees, at + 1, ':')
}

/// A `.` that is not part of `..`.
pub(crate) fn is_dot(trees: &[TokenTree], at: usize) -> bool {
    is_punct(trees, at, '.') && !is_punct(trees, at + 1, '.') && (at == 0 || !is_punct(trees, at - 1, '.'))
}

/// Whether the token at `at` comes after the `.` of a method or field.
pub(crate) fn after_dot(trees: &[TokenTree], at: usize) -> bool {
    at > 0 && is_dot(trees, at - 1)
}

pub(crate) fn group(trees: &[TokenTree], at: usize, delimiter: Delimiter) -> Option<&Group> {
    match trees.get(at) {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group),
        _ => None,
    }
}

/// The end of `<..>` that begins at `at`, or `at`.
pub(crate) fn after_generics(trees: &[TokenTree], at: usize) -> usize {
    if !is_punct(trees, at, '<') {
        return at;
    }
    let mut depth = 0usize;
    for index in at..trees.len() {
        if is_punct(trees, index, '<') {
            depth += 1;
        } else if is_punct(trees, index, '>') && !(index > 0 && is_punct(trees, index - 1, '-')) {
            depth -= 1;
            if depth == 0 {
                return index + 1;
            }
        }
    }
    at
}

/// The end of a turbofish at `at`, or `at`.
pub(crate) fn after_turbofish(trees: &[TokenTree], at: usize) -> usize {
    if is_path_separator(trees, at) && is_punct(trees, at + 2, '<') { after_generics(trees, at + 2) } else { at }
}

/// The path that begins with the word at `at`: its segments without generics, and its end.
pub(crate) fn path(trees: &[TokenTree], at: usize) -> (Vec<String>, usize) {
    let mut segments: Vec<String> = word(trees, at).into_iter().collect();
    let mut end = at + 1;
    loop {
        end = after_turbofish(trees, end);
        match word(trees, end + 2) {
            Some(segment) if is_path_separator(trees, end) => {
                segments.push(segment);
                end += 3;
            }
            _ => return (segments, end),
        }
    }
}

/// The end of the statement that begins at `at`.
pub(crate) fn statement_end(trees: &[TokenTree], at: usize) -> usize {
    let mut start = at;
    // Other attributes of the same statement.
    while is_punct(trees, start, '#') {
        start += 2;
    }
    let first = word(trees, start).unwrap_or_default();
    let is_block = ["if", "match", "for", "while", "loop", "unsafe"].contains(&first.as_str())
        || group(trees, start, Delimiter::Brace).is_some();
    for index in start..trees.len() {
        if is_punct(trees, index, ';') {
            return index + 1;
        }
        let is_body = is_block && group(trees, index, Delimiter::Brace).is_some();
        let goes_on = word(trees, index + 1).as_deref() == Some("else")
            || is_punct(trees, index + 1, '.')
            || is_punct(trees, index + 1, '?');
        if is_body && !goes_on {
            return index + 1;
        }
    }
    trees.len()
}

/// Whether arguments follow, of a function or of a macro.
pub(crate) fn calls(trees: &[TokenTree], at: usize) -> bool {
    let is_macro = is_punct(trees, at, '!') && matches!(trees.get(at + 1), Some(TokenTree::Group(_)));
    is_macro || group(trees, at, Delimiter::Parenthesis).is_some()
}

/// The name of a field or method.
pub(crate) fn member(trees: &[TokenTree], at: usize) -> Option<String> {
    match trees.get(at)? {
        TokenTree::Literal(index) => Some(index.to_string()),
        _ => word(trees, at).filter(|word| word != "await"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trees(text: &str) -> Vec<TokenTree> {
        text.parse::<proc_macro2::TokenStream>().unwrap().into_iter().collect()
    }

    #[test]
    fn paths_end_where_their_call_begins() {
        for (text, segments, rest) in [
            ("a::b::c(1)", "a::b::c", 1),
            ("Vec::<Box<dyn Fn() -> u8>>::new()", "Vec::new", 1),
            ("get::<u8>(x)", "get", 1),
            ("x.y", "x", 2),
        ] {
            let trees = trees(text);
            let (found, end) = path(&trees, 0);
            assert_eq!((found.join("::").as_str(), trees.len() - end), (segments, rest), "{text}");
        }
    }

    #[test]
    fn statements_end() {
        for (statement, rest) in [
            ("let x = match a { _ => 1 };", "f();"),
            ("if a { b } else if c { d } else { e }", "f();"),
            ("match a { _ => {} }", "f();"),
            ("#[cfg(a)] client.send();", "f();"),
            ("client.send().await?;", "f();"),
            ("{ a; b }", "f();"),
            ("send()", ""),
        ] {
            let all = trees(&format!("{statement} {rest}"));
            assert_eq!(statement_end(&all, 0), trees(statement).len(), "{statement}");
        }
    }
}
