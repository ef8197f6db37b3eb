//! The name of a handler: stored with every delivery, so pinned by its owner.

use crate::error::{Error, Result};
use crate::text::{Text, text_newtype};

text_newtype! {
    /// The name under which a handler's deliveries are stored, such as `shipping.ship`.
    ///
    /// A route's is `relaybus.transport:<transport>:<destination>`.
    HandlerId
}

/// Longest handler id, in bytes.
const MAX_HANDLER_ID: usize = 255;

impl HandlerId {
    /// A handler id.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when the text is empty, longer than 255 bytes, or has a `#` or a control character.
    pub fn new(id: impl Into<String>) -> Result<Self> {
        let id = id.into();
        if id.is_empty() || id.len() > MAX_HANDLER_ID || id.chars().any(|c| c == '#' || c.is_control()) {
            let shown: String = id.chars().take(64).filter(|c| !c.is_control()).collect();
            return Err(Error::configuration(format!(
                "`{shown}` is not a handler id: use 1 to {MAX_HANDLER_ID} bytes without `#` and control characters, such as `shipping.ship`"
            )));
        }
        Ok(Self(id.into()))
    }

    /// An id known at compile time, which the macros have checked.
    #[must_use]
    pub const fn from_static(id: &'static str) -> Self {
        Self(Text::Static(id))
    }
}
