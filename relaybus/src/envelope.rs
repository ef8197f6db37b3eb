//! The envelope: an event with everything that is stored and sent beside its payload.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::event::{Event, EventId, EventType, OrderingKey};
use crate::headers::Headers;

/// The JSON text of a payload, byte for byte as its producer serialized it. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawPayload(Arc<str>);

impl RawPayload {
    /// JSON text that is known to be valid: it was serialized here, or comes back from a store.
    #[must_use]
    pub fn stored(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// JSON text from elsewhere.
    ///
    /// # Errors
    /// `RELAYBUS_INVALID_ENVELOPE` when it is not valid JSON or has a character that not every store can keep: NUL
    /// or a lone surrogate.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self> {
        let text = text.into();
        serde_json::from_str::<serde::de::IgnoredAny>(&text)
            .map_err(|error| Error::InvalidEnvelope { reason: format!("its payload is not JSON ({error})") })?;
        check_storable(&text).map_err(|reason| Error::InvalidEnvelope { reason: reason.to_owned() })?;
        Ok(Self(text))
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An event on its way: its payload and everything beside it.
///
/// `P` is the typed payload in a handler; stores and transports move `Envelope<RawPayload>`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Envelope<P = RawPayload> {
    /// The identity of the event.
    pub id: EventId,
    /// The name of its type.
    pub event_type: EventType,
    /// The service that published it.
    pub source: Arc<str>,
    /// The ordering key, if it has an order.
    pub key: Option<OrderingKey>,
    /// The payload.
    pub payload: P,
    /// The headers.
    pub headers: Headers,
    /// Groups the events of one business transaction; its own id when the publisher gave none.
    pub correlation_id: Arc<str>,
    /// The event or command that caused this one.
    pub causation_id: Option<Arc<str>>,
    /// When it happened, by the publisher's clock.
    pub occurred_at: Timestamp,
}

impl<P> Envelope<P> {
    /// An envelope with the parts that every event has; set the others on the value.
    pub fn new(
        id: EventId,
        event_type: EventType,
        source: impl Into<Arc<str>>,
        payload: P,
        occurred_at: Timestamp,
    ) -> Self {
        let correlation_id = Arc::from(id.as_str());
        Self {
            id,
            event_type,
            source: source.into(),
            key: None,
            payload,
            headers: Headers::default(),
            correlation_id,
            causation_id: None,
            occurred_at,
        }
    }

    /// The envelope with its payload changed.
    pub(crate) fn map<Q>(self, change: impl FnOnce(P) -> Q) -> Envelope<Q> {
        Envelope {
            id: self.id,
            event_type: self.event_type,
            source: self.source,
            key: self.key,
            payload: change(self.payload),
            headers: self.headers,
            correlation_id: self.correlation_id,
            causation_id: self.causation_id,
            occurred_at: self.occurred_at,
        }
    }

    /// The same envelope around another payload.
    pub fn with_payload<Q>(&self, payload: Q) -> Envelope<Q> {
        Envelope {
            id: self.id.clone(),
            event_type: self.event_type.clone(),
            source: self.source.clone(),
            key: self.key.clone(),
            payload,
            headers: self.headers.clone(),
            correlation_id: self.correlation_id.clone(),
            causation_id: self.causation_id.clone(),
            occurred_at: self.occurred_at,
        }
    }
}

impl Envelope<RawPayload> {
    /// The envelope with its payload decoded and validated.
    ///
    /// # Errors
    /// `RELAYBUS_EVENT_VALIDATION` when the payload does not decode as `E` or `E::validate` refuses it.
    pub fn decode<E: Event>(&self) -> Result<Envelope<E>> {
        let invalid = |reason: String, source| Error::EventValidation {
            event_type: self.event_type.clone(),
            reason,
            source: Some(source),
        };
        let payload: E = serde_json::from_str(self.payload.as_str())
            .map_err(|error| invalid(format!("it does not decode ({})", position_of(&error)), fault_of(&error)))?;
        payload.validate().map_err(|error| invalid("its validation refused it".to_owned(), error))?;
        Ok(self.with_payload(payload))
    }
}

fn position_of(error: &serde_json::Error) -> String {
    format!("{:?} error at line {} column {}", error.classify(), error.line(), error.column()).to_lowercase()
}

/// What the decoder says, without the place, which is told already, and without the value it met: errors are stored and
/// logged, and a payload is nobody's business there.
fn fault_of(error: &serde_json::Error) -> crate::BoxError {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    without_value(text.strip_suffix(&place).unwrap_or(&text)).into()
}

fn without_value(text: &str) -> String {
    for fault in ["invalid type:", "invalid value:", "unknown variant"] {
        let Some(rest) = text.strip_prefix(fault) else { continue };
        let Some(end) = rest.rfind(", expected ") else { continue };
        let (found, expected) = rest.split_at(end);
        let kind = found.split(['"', '`']).next().unwrap_or_default().trim_end();
        return format!("{fault}{kind}{expected}");
    }
    text.to_owned()
}

/// Refuses JSON text with a NUL (`\u0000`) or a lone surrogate escape. Not every store can keep them, and one
/// answer for all stores means that a payload which was accepted here can move anywhere.
pub(crate) fn check_storable(json: &str) -> std::result::Result<(), &'static str> {
    if json.contains('\0') {
        return Err("its text has a NUL character: strip or encode it");
    }
    if !json.contains("\\u") {
        return Ok(());
    }
    let bytes = json.as_bytes();
    let mut i = 0;
    let mut high_before = false;
    while i < bytes.len() {
        if bytes[i] != b'\\' {
            if high_before {
                return Err(LONE_SURROGATE);
            }
            i += 1;
            continue;
        }
        if bytes.get(i + 1) != Some(&b'u') {
            if high_before {
                return Err(LONE_SURROGATE);
            }
            i += 2;
            continue;
        }
        let code = json.get(i + 2..i + 6).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0xFFFD);
        match (code, high_before) {
            (0, _) => return Err("its text has an escaped NUL character: strip or encode it"),
            (0xD800..=0xDBFF, false) => high_before = true,
            (0xDC00..=0xDFFF, true) => high_before = false,
            (0xD800..=0xDFFF, _) | (_, true) => return Err(LONE_SURROGATE),
            _ => {}
        }
        i += 6;
    }
    if high_before { Err(LONE_SURROGATE) } else { Ok(()) }
}

const LONE_SURROGATE: &str = "its text has a lone surrogate escape: write whole characters";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_decoding_tell_no_values() {
        for (text, told) in [
            (r#"invalid type: string "a, expected b", expected u32"#, "invalid type: string, expected u32"),
            ("invalid type: integer `5`, expected a string", "invalid type: integer, expected a string"),
            ("invalid value: integer `-5`, expected u32", "invalid value: integer, expected u32"),
            ("invalid type: map, expected u32", "invalid type: map, expected u32"),
            ("unknown variant `x`, expected `a` or `b`", "unknown variant, expected `a` or `b`"),
            ("missing field `order_id`", "missing field `order_id`"),
        ] {
            assert_eq!(without_value(text), told);
        }
    }

    #[test]
    fn storable_text() {
        for good in
            [r#""a""#, r#""\u0041""#, r#""\ud83d\ude00""#, r#""\\u0000""#, r#""\\\\ud800""#, "\"😀\"", r#"{"a":"\n"}"#]
        {
            assert_eq!(check_storable(good), Ok(()), "{good}");
        }
        for bad in [
            r#""\u0000""#,
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\u0041""#,
            r#""\ud800x""#,
            r#""\ud800\n""#,
            r#""\\\u0000""#,
            "\"\0\"",
        ] {
            assert!(check_storable(bad).is_err(), "{bad}");
        }
    }
}
