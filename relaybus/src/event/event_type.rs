//! The name of an event type and its grammar.

use crate::error::{Error, Result};
use crate::text::{Text, text_newtype};

text_newtype! {
    /// The name of an event type: 1 to 255 characters of `A-Za-z0-9 . _ : / -`.
    ///
    /// ```
    /// use relaybus::EventType;
    /// const PLACED: EventType = EventType::from_static("order.placed.v1"); // checked by the compiler
    /// assert!(EventType::new("order placed").is_err());
    /// ```
    EventType
}

/// Longest event type, in characters.
pub(crate) const MAX_EVENT_TYPE: usize = 255;

impl EventType {
    /// A type name known at compile time. In a `const` the compiler refuses an invalid one.
    ///
    /// # Panics
    /// When `name` breaks the grammar.
    #[must_use]
    #[allow(clippy::panic, reason = "evaluated in a const, the panic is the compiler's message")]
    pub const fn from_static(name: &'static str) -> Self {
        assert!(
            is_valid(name.as_bytes()),
            "an event type has 1 to 255 characters of `A-Za-z0-9 . _ : / -`, such as `order.placed.v1`"
        );
        Self(Text::Static(name))
    }

    /// The name, when it was known at compile time: always, for [`crate::Event::TYPE`]. Empty otherwise.
    #[must_use]
    pub const fn static_name(&self) -> &'static str {
        match &self.0 {
            Text::Static(name) => name,
            Text::Shared(_) => "",
        }
    }

    /// A type name known at run time.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when `name` breaks the grammar.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        if is_valid(name.as_bytes()) {
            return Ok(Self(name.into()));
        }
        let shown: String = name.chars().take(64).collect();
        Err(Error::configuration(format!(
            "`{shown}` is not an event type: use 1 to 255 characters of `A-Za-z0-9 . _ : / -`"
        )))
    }
}

const fn is_valid(name: &[u8]) -> bool {
    if name.is_empty() || name.len() > MAX_EVENT_TYPE {
        return false;
    }
    let mut i = 0;
    while i < name.len() {
        if !matches!(name[i], b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b':' | b'/' | b'-') {
            return false;
        }
        i += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        for good in ["a", "order.placed.v1", "A/b:c_d-e.9", &"x".repeat(255)] {
            assert!(EventType::new(good).is_ok(), "{good}");
        }
        for bad in ["", " ", "order placed", "é", "a\n", "a\0", "a*", &"x".repeat(256)] {
            assert!(EventType::new(bad).is_err(), "{bad:?}");
        }
    }
}
