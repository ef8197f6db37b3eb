//! What is kept of an error once its attempt is over: in the store, in hooks and in reports.

use crate::error::{Error, causes};

/// What is kept of an error: the `last_error` of a delivery, as JSON, and the `error` of observer hooks.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ErrorInfo {
    /// [`Error::name`], such as `HandlerTimeoutError`; `Error` for a handler's or driver's own error.
    pub name: String,
    /// The message with its causes, joined by `: `.
    pub message: String,
    /// The stable code; only errors of relaybus have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Longest error text that is stored with a delivery, in bytes.
const MAX_ERROR_BYTES: usize = 4096;

impl ErrorInfo {
    /// What is kept of `error`.
    ///
    /// ```
    /// # use relaybus::{Error, ErrorInfo};
    /// let info = ErrorInfo::of(&Error::non_retryable("no such account"));
    /// assert_eq!(info.code.as_deref(), Some("RELAYBUS_NON_RETRYABLE"));
    /// ```
    #[must_use]
    pub fn of(error: &Error) -> Self {
        let (name, outer): (&str, &(dyn std::error::Error + 'static)) = match error {
            Error::Handler { source } => match source.downcast_ref::<Error>() {
                Some(inner) => return Self::of(inner),
                None => ("Error", source.as_ref()),
            },
            ours => (ours.name(), ours),
        };
        let code = match error {
            Error::Handler { .. } | Error::HandlerPanicked { .. } => None,
            ours => Some(ours.code().to_owned()),
        };
        Self { name: name.to_owned(), message: chain(outer), code }
    }

    /// What a store kept, such as the `last_error` of a delivery; `None` when the text is not of this form.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// This as JSON text, the form a store keeps.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn chain(outer: &(dyn std::error::Error + 'static)) -> String {
    let mut text = outer.to_string();
    for error in causes(outer).skip(1) {
        let line = error.to_string();
        // Some foreign errors repeat their cause; a reader wants it once.
        if !text.ends_with(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
    }
    truncate(&mut text);
    text
}

fn truncate(text: &mut String) {
    // SQL stores cannot all keep NUL in text; an error message never needs one.
    if text.contains('\0') {
        *text = text.replace('\0', "\u{FFFD}");
    }
    if text.len() > MAX_ERROR_BYTES {
        let mut end = MAX_ERROR_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
}
