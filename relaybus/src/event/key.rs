//! The ordering key: what it may be, and which types a key can be taken from.

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::text::text_newtype;

text_newtype! {
    /// An ordering key: events of one key are handled one at a time per handler, in commit order.
    OrderingKey
}

/// Longest ordering key, in bytes.
const MAX_KEY_BYTES: usize = 64 * 1024;

impl OrderingKey {
    /// A key.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when the text is empty, longer than 64 KiB or contains NUL.
    pub fn new(key: impl Into<String>) -> Result<Self> {
        let key = key.into();
        if key.is_empty() {
            return Err(Error::configuration(
                "an ordering key must not be empty: pass a text, or no key for an event without an order",
            ));
        }
        if key.len() > MAX_KEY_BYTES || key.contains('\0') {
            return Err(Error::configuration(format!(
                "an ordering key has at most {MAX_KEY_BYTES} bytes and no NUL character, this one has {} bytes: pass a shorter or cleaned one",
                key.len()
            )));
        }
        Ok(Self(key.into()))
    }
}

/// A type that an ordering key can be taken from: strings, UUIDs, integers, and options and references of them.
///
/// `#[event(key = field)]` reads the field through it. An empty string is an error; `None` is no key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an ordering key",
    label = "not usable as a key",
    note = "a key is a string, a UUID, an integer or an `Option` of one; implement `KeyValue` for a type of your own"
)]
pub trait KeyValue {
    /// The text of the key, or `None` for an event without an order.
    fn key_text(&self) -> Option<Cow<'_, str>>;
}

impl KeyValue for str {
    fn key_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl KeyValue for String {
    fn key_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl KeyValue for Arc<str> {
    fn key_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl KeyValue for Box<str> {
    fn key_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl KeyValue for Cow<'_, str> {
    fn key_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl KeyValue for uuid::Uuid {
    fn key_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(self.hyphenated().to_string()))
    }
}

impl<T: KeyValue + ?Sized> KeyValue for &T {
    fn key_text(&self) -> Option<Cow<'_, str>> {
        (**self).key_text()
    }
}

impl<T: KeyValue> KeyValue for Option<T> {
    fn key_text(&self) -> Option<Cow<'_, str>> {
        self.as_ref().and_then(KeyValue::key_text)
    }
}

macro_rules! integer_keys {
    ($($integer:ty),*) => {$(
        impl KeyValue for $integer {
            fn key_text(&self) -> Option<Cow<'_, str>> {
                Some(Cow::Owned(self.to_string()))
            }
        }
    )*};
}
integer_keys!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

/// The key of a value, for generated code.
///
/// # Errors
/// As [`OrderingKey::new`].
pub fn key_of<T: KeyValue + ?Sized>(value: &T) -> Result<Option<OrderingKey>> {
    value.key_text().map(|text| OrderingKey::new(text.into_owned())).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_strings_integers_uuids_and_options() {
        let text = |value: &dyn KeyValue| value.key_text().map(Cow::into_owned);
        assert_eq!(text(&"a"), Some("a".to_owned()));
        assert_eq!(text(&-5_i64), Some("-5".to_owned()));
        assert_eq!(text(&Some(7_u8)), Some("7".to_owned()));
        assert_eq!(text(&None::<String>), None);
        assert_eq!(text(&uuid::Uuid::nil()), Some("00000000-0000-0000-0000-000000000000".to_owned()));
    }

    #[test]
    fn an_empty_key_is_an_error_and_none_is_no_key() {
        assert_eq!(key_of("").map_err(|e| e.code()), Err("RELAYBUS_CONFIGURATION"));
        assert_eq!(key_of(&Some(String::new())).map_err(|e| e.code()), Err("RELAYBUS_CONFIGURATION"));
        assert_eq!(key_of(&None::<String>).ok(), Some(None));
        assert!(OrderingKey::new("k".repeat(64 * 1024)).is_ok());
        assert!(OrderingKey::new("k".repeat(64 * 1024 + 1)).is_err());
    }
}
