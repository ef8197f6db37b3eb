//! The binds of one call.

use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, Encode, Sqlite, Type};

pub(super) use crate::ids::{decode_id, encode_id};

/// The binds of one call, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Binds(pub(super) SqliteArguments);

impl Binds {
    pub(super) fn with_capacity(binds: usize) -> Self {
        let mut arguments = SqliteArguments::default();
        arguments.reserve(binds, 0);
        Self(arguments)
    }

    /// Adds a bind. The types used here (integers, text, bytes) cannot fail to encode.
    pub(super) fn push<'t, T: Encode<'t, Sqlite> + Type<Sqlite>>(&mut self, value: T) {
        let added = self.0.add(value);
        debug_assert!(added.is_ok(), "integers, text and bytes always encode");
    }

    pub(super) fn with<'t, T: Encode<'t, Sqlite> + Type<Sqlite>>(mut self, value: T) -> Self {
        self.push(value);
        self
    }

    pub(super) fn null(&mut self, count: usize) {
        for _ in 0..count {
            self.push(Option::<i64>::None);
        }
    }
}

/// The JSON text of a list of names.
pub(super) fn json_list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from("[");
    for name in names {
        if text.len() > 1 {
            text.push(',');
        }
        text.push('"');
        for character in name.chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                // Handler ids have no control characters; `#` and these never get here.
                other => text.push(other),
            }
        }
        text.push('"');
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_json() {
        assert_eq!(json_list(["a", "b\"c", "d\\e"].into_iter()), r#"["a","b\"c","d\\e"]"#);
        assert_eq!(json_list(std::iter::empty()), "[]");
    }
}
