//! SPDX licence expressions: parsing them, and whether an allow-list satisfies one.
//!
//! `OR` needs one side, `AND` both and binds tighter, `WITH` makes one licence of two words. Manifests of old crates
//! write `/` for `OR`. Grammar: SPDX specification, annex "SPDX license expressions".

/// A parsed expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// One licence, with its exception if it has one: `Apache-2.0 WITH LLVM-exception`.
    Licence(String),
    /// Either side is enough.
    Or(Box<Expression>, Box<Expression>),
    /// Both sides bind.
    And(Box<Expression>, Box<Expression>),
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// When the text is no expression: the message says what was expected where.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut parser = Parser { words: &words };
        let expression = parser.either()?;
        match parser.words.first() {
            None => Ok(expression),
            Some(word) => Err(format!("unexpected `{word}`: expected `OR`, `AND` or the end")),
        }
    }

    /// Whether the allowed licences are enough to use what is licensed so.
    pub(crate) fn allowed(&self, allowed: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Licence(name) => allowed(name),
            Self::Or(left, right) => left.allowed(allowed) || right.allowed(allowed),
            Self::And(left, right) => left.allowed(allowed) && right.allowed(allowed),
        }
    }
}

struct Parser<'w> {
    words: &'w [&'w str],
}

impl<'w> Parser<'w> {
    fn either(&mut self) -> Result<Expression, String> {
        let mut left = self.both()?;
        while self.eat("OR") {
            left = Expression::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Expression, String> {
        let mut left = self.one()?;
        while self.eat("AND") {
            left = Expression::And(Box::new(left), Box::new(self.one()?));
        }
        Ok(left)
    }

    fn one(&mut self) -> Result<Expression, String> {
        if self.eat("(") {
            let inner = self.either()?;
            return if self.eat(")") { Ok(inner) } else { Err("expected `)`".to_owned()) };
        }
        let licence = self.name("a licence")?;
        if self.eat("WITH") {
            let exception = self.name("an exception")?;
            return Ok(Expression::Licence(format!("{licence} WITH {exception}")));
        }
        Ok(Expression::Licence(licence.to_owned()))
    }

    fn name(&mut self, expected: &str) -> Result<&'w str, String> {
        match self.words {
            [word, rest @ ..] if !["OR", "AND", "WITH", "(", ")"].contains(word) => {
                self.words = rest;
                Ok(word)
            }
            [word, ..] => Err(format!("unexpected `{word}`: expected {expected}")),
            [] => Err(format!("expected {expected}")),
        }
    }

    fn eat(&mut self, word: &str) -> bool {
        match self.words {
            [first, rest @ ..] if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Expression;

    fn allowed(text: &str) -> bool {
        let expression = Expression::parse(text).unwrap();
        expression
            .allowed(&|name| ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"].contains(&name))
    }

    #[test]
    fn one_side_of_or_is_enough_and_and_needs_both() {
        let cases = [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("GPL-3.0-only OR MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND NCSA", false),
            ("MIT/Apache-2.0", true),
            ("GPL-2.0/LGPL-2.1", false),
            ("((MIT))", true),
        ];
        for (text, expected) in cases {
            assert_eq!(allowed(text), expected, "{text}");
        }
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert!(allowed("MIT OR GPL-3.0-only AND NCSA"));
        assert!(allowed("GPL-3.0-only AND NCSA OR MIT"));
        assert!(!allowed("(MIT OR GPL-3.0-only) AND NCSA"));
    }

    #[test]
    fn an_exception_makes_another_licence() {
        assert!(allowed("Apache-2.0 WITH LLVM-exception OR NCSA"));
        assert!(!allowed("MIT WITH LLVM-exception"));
        assert!(!allowed("Apache-2.0 WITH Classpath-exception-2.0"));
    }

    #[test]
    fn what_is_no_expression_is_refused_in_words() {
        let cases = [
            ("", "expected a licence"),
            ("MIT OR", "expected a licence"),
            ("AND MIT", "unexpected `AND`: expected a licence"),
            ("MIT Apache-2.0", "unexpected `Apache-2.0`: expected `OR`, `AND` or the end"),
            ("(MIT", "expected `)`"),
            ("MIT)", "unexpected `)`: expected `OR`, `AND` or the end"),
            ("MIT WITH", "expected an exception"),
        ];
        for (text, expected) in cases {
            assert_eq!(Expression::parse(text).unwrap_err(), expected, "{text}");
        }
    }
}
