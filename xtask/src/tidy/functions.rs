//! Finding the functions of a file, and how long each is.

use super::source::{Source, is_word, words};

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// The index of the line with its `fn`.
    pub(crate) index: usize,
    /// Lines from `fn` to the closing bracket, both counted.
    pub(crate) lines: usize,
}

/// The functions of a file, nested ones too.
pub(crate) fn functions(source: &Source) -> Vec<Function> {
    let mut found = Vec::new();
    for (index, line) in source.lines.iter().enumerate() {
        for at in words(&line.code, "fn") {
            let rest = line.code.get(at + 2..).unwrap_or_default().trim_start();
            let name: String = rest.chars().take_while(|&character| is_word(character)).collect();
            if let Some(end) = source.block_end(index).filter(|_| !name.is_empty()) {
                found.push(Function { name, index, lines: end - index + 1 });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Source, functions};

    #[test]
    fn functions_with_bodies_are_measured() {
        let text = "\
trait A {
    fn declared(&self);
    fn given(&self) {}
}
pub(crate) async fn long<T>(
    callback: fn(u8) -> [u8; 2],
) -> T {
    fn nested() {
        \"}\"
    }
}
type F = fn(u8);
";
        let found: Vec<(String, usize)> =
            functions(&Source::parse("a.rs", text)).into_iter().map(|f| (f.name, f.lines)).collect();
        let expected = [("given", 1), ("long", 7), ("nested", 3)];
        assert_eq!(found, expected.map(|(name, lines)| (name.to_owned(), lines)));
    }
}
