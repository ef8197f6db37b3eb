//! A Rust file split into code and comments, line by line.
//!
//! In `code`, comments and the insides of strings and characters are blanks, so braces can be counted and words found
//! without meeting prose; in `comment`, everything else is. Columns stay what they were.

use std::iter::Peekable;
use std::str::Chars;

/// A Rust file, split.
pub(crate) struct Source {
    /// Its path from the root of the repository, with `/`.
    pub(crate) path: String,
    /// Its lines.
    pub(crate) lines: Vec<Line>,
}

/// One line of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// The code, everything else blank.
    pub(crate) code: String,
    /// The comment with its slashes, everything else blank.
    pub(crate) comment: String,
}

impl Line {
    /// Whether the line holds a comment and no code.
    pub(crate) fn is_comment(&self) -> bool {
        self.code.trim().is_empty() && !self.comment.trim().is_empty()
    }

    /// The text of a doc comment (`///` or `//!`) without its slashes.
    pub(crate) fn doc(&self) -> Option<&str> {
        let comment = self.comment.trim_start();
        comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!")).map(str::trim)
    }
}

impl Source {
    /// Splits a file. Text that is no Rust is split somehow, without failing.
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let mut splitter = Splitter { rest: text.chars().peekable(), lines: vec![Line::default()], previous: ' ' };
        splitter.file();
        let mut lines = splitter.lines;
        if text.is_empty() || text.ends_with('\n') {
            lines.pop();
        }
        Self { path: path.to_owned(), lines }
    }

    /// The line of the bracket that closes the first `{` at or after line `from`; none if a `;` comes first.
    pub(crate) fn block_end(&self, from: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut brackets = 0_usize;
        for (index, line) in self.lines.iter().enumerate().skip(from) {
            for character in line.code.chars() {
                match character {
                    '{' => depth += 1,
                    '}' if depth <= 1 => return (depth == 1).then_some(index),
                    '}' => depth -= 1,
                    '(' | '[' => brackets += 1,
                    ')' | ']' => brackets = brackets.saturating_sub(1),
                    ';' if depth == 0 && brackets == 0 => return None,
                    _ => {}
                }
            }
        }
        None
    }

    /// For each line whether it belongs to a `#[cfg(test)]` item.
    pub(crate) fn unit_tests(&self) -> Vec<bool> {
        let mut inside = vec![false; self.lines.len()];
        for (index, line) in self.lines.iter().enumerate() {
            if line.code.trim_start().starts_with("#[cfg(test)]") {
                let end = self.block_end(index).unwrap_or(index);
                inside.iter_mut().take(end + 1).skip(index).for_each(|line| *line = true);
            }
        }
        inside
    }

    /// The lines directly above `index` that are comments or attributes, nearest first.
    pub(crate) fn heading(&self, index: usize) -> impl Iterator<Item = &Line> {
        let above = self.lines.iter().take(index).rev();
        above.take_while(|line| line.is_comment() || line.code.trim_start().starts_with("#["))
    }
}

struct Splitter<'t> {
    rest: Peekable<Chars<'t>>,
    lines: Vec<Line>,
    /// The character before, to tell a raw string from a name that ends in `r`.
    previous: char,
}

impl Splitter<'_> {
    fn file(&mut self) {
        while let Some(character) = self.rest.next() {
            let before = std::mem::replace(&mut self.previous, character);
            match character {
                '/' if self.rest.peek() == Some(&'/') => self.line_comment(),
                '/' if self.rest.peek() == Some(&'*') => self.block_comment(),
                '"' => {
                    self.code('"');
                    self.string();
                }
                'r' if !is_word(before) || ((before == 'b' || before == 'c') && self.raw_prefix()) => self.raw_string(),
                '\'' => self.character_or_lifetime(),
                other => self.code(other),
            }
        }
    }

    /// Whether the `b` or `c` before `r` begins a word, so that `br"..."` is a raw string and `abr` is not.
    fn raw_prefix(&self) -> bool {
        let code = self.lines.last().map_or("", |line| line.code.as_str());
        !code.chars().rev().nth(1).is_some_and(is_word)
    }

    fn line_comment(&mut self) {
        self.comment('/');
        while let Some(&character) = self.rest.peek() {
            if character == '\n' {
                return;
            }
            self.rest.next();
            self.comment(character);
        }
    }

    fn block_comment(&mut self) {
        self.comment('/');
        let mut depth = 0_usize;
        let mut last = '/';
        while let Some(character) = self.rest.next() {
            self.comment(character);
            match (last, character) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth = depth.saturating_sub(1),
                _ => {
                    last = character;
                    continue;
                }
            }
            if depth == 0 {
                return;
            }
            // Both characters are spent: `/*/` does not close what it opens.
            last = ' ';
        }
    }

    fn string(&mut self) {
        while let Some(character) = self.rest.next() {
            match character {
                '"' => return self.code('"'),
                '\\' => {
                    self.blank('\\');
                    if let Some(escaped) = self.rest.next() {
                        self.blank(escaped);
                    }
                }
                other => self.blank(other),
            }
        }
    }

    /// After an `r`: a raw string, or a name (`r`, `retry`, `r#type`).
    fn raw_string(&mut self) {
        self.code('r');
        let mut ahead = self.rest.clone();
        let mut hashes = 0_usize;
        while ahead.next_if_eq(&'#').is_some() {
            hashes += 1;
        }
        if ahead.next() != Some('"') {
            return;
        }
        for _ in 0..=hashes {
            if let Some(opening) = self.rest.next() {
                self.code(opening);
            }
        }
        while let Some(character) = self.rest.next() {
            if character == '"' && self.rest.clone().take(hashes).filter(|&next| next == '#').count() == hashes {
                self.code('"');
                self.rest.by_ref().take(hashes).count();
                (0..hashes).for_each(|_| self.code('#'));
                return;
            }
            self.blank(character);
        }
    }

    fn character_or_lifetime(&mut self) {
        self.code('\'');
        let mut ahead = self.rest.clone();
        let is_character = match ahead.next() {
            Some('\\') => true,
            Some(_) => ahead.next() == Some('\''),
            None => false,
        };
        if !is_character {
            return;
        }
        let mut escaped = false;
        while let Some(character) = self.rest.next() {
            if character == '\'' && !escaped {
                return self.code('\'');
            }
            escaped = character == '\\' && !escaped;
            self.blank(character);
        }
    }

    fn code(&mut self, character: char) {
        self.push(character, ' ');
    }

    fn comment(&mut self, character: char) {
        self.push(' ', character);
    }

    fn blank(&mut self, character: char) {
        self.push(if character == '\n' { '\n' } else { ' ' }, ' ');
        self.previous = ' ';
    }

    fn push(&mut self, code: char, comment: char) {
        if code == '\n' || comment == '\n' {
            self.lines.push(Line::default());
        } else if let Some(line) = self.lines.last_mut() {
            line.code.push(code);
            line.comment.push(comment);
        }
    }
}

/// Whether a character can be part of a Rust name.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The places where `word` stands in `code` as a whole word.
pub(crate) fn words<'c>(code: &'c str, word: &'c str) -> impl Iterator<Item = usize> + 'c {
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = code.get(..at).and_then(|text| text.chars().next_back());
        let after = code.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::{Source, words};

    fn code(text: &str) -> Vec<String> {
        Source::parse("a.rs", text).lines.into_iter().map(|line| line.code.trim_end().to_owned()).collect()
    }

    fn comments(text: &str) -> Vec<String> {
        Source::parse("a.rs", text).lines.into_iter().map(|line| line.comment.trim().to_owned()).collect()
    }

    #[test]
    fn comments_and_the_insides_of_strings_are_blank() {
        let cases = [
            ("let a = \"x // y\"; // z", "let a = \"      \";"),
            (r#"let a = "a\"b{"; f()"#, "let a = \"     \"; f()"),
            (r##"let a = r#"a"b{"#; f()"##, "let a = r#\"    \"#; f()"),
            (r#"let a = br"\"; f()"#, "let a = br\" \"; f()"),
            ("bar\"{\"", "bar\" \""),
            ("let a = '{'; f::<'a>('\\'', '\"')", "let a = ' '; f::<'a>('  ', ' ')"),
            ("r#type /* a /* b */ c */ + d", "r#type                   + d"),
            ("/* a */ b", "        b"),
            ("/*/ a */ b", "         b"),
        ];
        for (text, expected) in cases {
            assert_eq!(code(text), [expected], "{text}");
        }
    }

    #[test]
    fn strings_and_comments_may_span_lines() {
        assert_eq!(code("f(\"a\nb {\");\ng()\n"), ["f(\"", "   \");", "g()"]);
        assert_eq!(comments("a /* b\nc */ d // e\n"), ["/* b", "c */   // e"]);
        assert_eq!(comments("//! one\n/// two\ncode\n"), ["//! one", "/// two", ""]);
    }

    #[test]
    fn odd_text_does_no_harm() {
        for text in ["", "\n", "\"", "'", "/*", "r#\"", "'\\", "*/ }", "é'é'\"é"] {
            Source::parse("a.rs", text);
        }
        assert!(Source::parse("a.rs", "").lines.is_empty());
    }

    #[test]
    fn a_block_ends_at_its_own_bracket() {
        let source = Source::parse("a.rs", "fn a(x: [u8; 2])\n{\n  if b { \"}\" }\n}\nfn c();\nmod d {}\n");
        assert_eq!(source.block_end(0), Some(3));
        assert_eq!(source.block_end(4), None);
        assert_eq!(source.block_end(5), Some(5));
    }

    #[test]
    fn unit_tests_are_found_by_their_attribute() {
        let source = Source::parse("a.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n");
        assert_eq!(source.unit_tests(), [false, true, true, true, true, false]);
    }

    #[test]
    fn a_heading_is_what_stands_directly_above() {
        let source = Source::parse("a.rs", "// far\n\n/// doc\n#[must_use]\nfn a() {}\n");
        assert_eq!(source.heading(4).count(), 2);
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("fnord fn my_fn fn(", "fn").collect::<Vec<_>>(), [6, 15]);
    }
}
