//! What is known about a local name: a client of a service, a value of a type of the same crate, or nothing.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::Path;
use crate::names::type_paths;
use crate::services::{Service, client_of, service_of};
use crate::tokens::{group, is_dot, is_keyword, is_path_separator, is_punct, path, word};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Binding {
    /// Nothing is known.
    Plain,
    /// A client: its methods call the service.
    Client(&'static Service),
    /// A client whose making was reported already.
    Reported,
    /// A transaction that was opened by hand.
    Transaction,
    /// A value whose type mentions these types.
    Typed(Vec<Path>),
}

impl Binding {
    /// The binding of a value whose type has these full paths.
    pub(crate) fn of_paths(paths: Vec<Path>) -> Self {
        match paths.iter().find_map(|path| client_of(path)) {
            Some(service) => Self::Client(service),
            None => Self::Typed(paths),
        }
    }

    /// The binding of a value of the type that these tokens are.
    pub(crate) fn of_type(tokens: TokenStream, resolve: &dyn Fn(&[String]) -> Path) -> Self {
        Self::of_paths(type_paths(tokens).iter().map(|path| resolve(path)).collect())
    }
}

/// Methods of a client, or of what holds clients, that call nobody. `is_bare` says that there are no arguments.
pub(crate) fn is_harmless(method: &str, is_bare: bool) -> bool {
    // Reading a lock, and not a socket.
    let of_locks = ["lock", "read", "write"];
    let others = [
        "clone",
        "cloned",
        "as_ref",
        "as_mut",
        "as_deref",
        "borrow",
        "to_owned",
        "deref",
        "unwrap",
        "expect",
        "ok_or",
        "ok_or_else",
        "iter",
        "iter_mut",
        "into_iter",
        "is_some",
        "is_none",
        "is_empty",
        "len",
    ];
    (is_bare && of_locks.contains(&method)) || others.contains(&method)
}

/// A `let`: the names it makes, the tokens of its type, and those of its value.
pub(crate) struct Let<'t> {
    pub(crate) names: Vec<String>,
    pub(crate) ty: &'t [TokenTree],
    pub(crate) value: &'t [TokenTree],
}

impl<'t> Let<'t> {
    /// Reads what follows the word `let`.
    pub(crate) fn read(trees: &'t [TokenTree]) -> Self {
        let is_end = |at: &usize| is_punct(trees, *at, ';') || word(trees, *at).as_deref() == Some("else");
        let end = (0..trees.len()).find(is_end).unwrap_or(trees.len());
        let equals = (0..end).find(|at| is_assignment(trees, *at)).unwrap_or(end);
        let is_colon = |at: &usize| {
            is_punct(trees, *at, ':')
                && !is_path_separator(trees, *at)
                && (*at == 0 || !is_path_separator(trees, *at - 1))
        };
        let colon = (0..equals).find(is_colon).unwrap_or(equals);
        let after = |at: usize, end: usize| &trees[(at + 1).min(end)..end];
        Self { names: pattern_names(&trees[..colon]), ty: after(colon, equals), value: after(equals, end) }
    }

    /// Whether the value is what a method called `begin..` returns.
    pub(crate) fn begins_transaction(&self) -> bool {
        (1..self.value.len()).any(|at| {
            is_dot(self.value, at - 1)
                && word(self.value, at).is_some_and(|word| word == "begin" || word == "begin_with")
                && group(self.value, at + 1, Delimiter::Parenthesis).is_some()
        })
    }

    /// The path of the type that the value is made of: `A` of `A::new(..)` and `A { .. }`.
    pub(crate) fn made_of(&self) -> Option<Path> {
        let start = usize::from(is_punct(self.value, 0, '&'));
        word(self.value, start).filter(|word| !is_keyword(word))?;
        let (mut segments, end) = path(self.value, start);
        let is_call = group(self.value, end, Delimiter::Parenthesis).is_some();
        if is_call {
            segments.pop();
        }
        let is_type = segments.last().is_some_and(|last| last.starts_with(char::is_uppercase));
        (is_type && (is_call || group(self.value, end, Delimiter::Brace).is_some())).then_some(segments)
    }
}

/// The names in the patterns of the arms of a `match`.
pub(crate) fn arm_names(arms: &[TokenTree]) -> Vec<String> {
    let (mut names, mut start) = (Vec::new(), 0);
    for at in 0..arms.len() {
        if is_punct(arms, at, '=') && is_punct(arms, at + 1, '>') {
            let end = (start..at).find(|at| word(arms, *at).as_deref() == Some("if")).unwrap_or(at);
            names.extend(pattern_names(&arms[start..end]));
            start = at + 2;
        } else if is_punct(arms, at, ',') || group(arms, at, Delimiter::Brace).is_some_and(|_| at == start) {
            start = at + 1;
        }
    }
    names
}

/// A `=` that is not part of another operator.
fn is_assignment(trees: &[TokenTree], at: usize) -> bool {
    let joins = |at: usize| matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.spacing() == proc_macro2::Spacing::Joint);
    is_punct(trees, at, '=')
        && !(joins(at) && (is_punct(trees, at + 1, '=') || is_punct(trees, at + 1, '>')))
        && !(at > 0 && joins(at - 1))
}

pub(crate) fn pattern_names(trees: &[TokenTree]) -> Vec<String> {
    let mut names = Vec::new();
    for (at, tree) in trees.iter().enumerate() {
        if let TokenTree::Group(group) = tree {
            names.extend(pattern_names(&group.stream().into_iter().collect::<Vec<_>>()));
        }
        let Some(name) = word(trees, at) else { continue };
        let is_path = is_path_separator(trees, at + 1) || matches!(trees.get(at + 1), Some(TokenTree::Group(_)));
        if !is_keyword(&name) && !is_path && !name.starts_with(char::is_uppercase) {
            names.push(name);
        }
    }
    names
}

/// What the maker of a client talks to: `reqwest::Client::new`.
pub(crate) fn made_client(full: &[String]) -> Option<&'static Service> {
    let owner = full.len().checked_sub(1).map(|end| &full[..end])?;
    service_of(full).filter(|_| client_of(owner).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<R>(text: &str, check: impl FnOnce(Let<'_>) -> R) -> R {
        let trees: Vec<TokenTree> = text.parse::<TokenStream>().unwrap().into_iter().collect();
        check(Let::read(&trees))
    }

    #[test]
    fn lets_are_taken_apart() {
        read("mut client: reqwest::Client = make() ;", |found| {
            assert_eq!(found.names, ["client"]);
            assert_eq!((found.ty.len(), found.value.len()), (4, 2));
        });
        read("(a, Some(b)) = x == y ;", |found| {
            assert_eq!(found.names, ["a", "b"]);
            assert!(found.ty.is_empty() && found.value.len() == 4);
        });
        read("mut tx = self.bus.begin().await? ;", |found| assert!(found.begins_transaction()));
        read("x = Repo::<u8>::new(1) ;", |found| assert_eq!(found.made_of(), Some(vec!["Repo".to_owned()])));
        read("x = make(1) ;", |found| assert_eq!(found.made_of(), None));
    }
}
