//! Tracing hooks, and the W3C trace context that an event carries in its headers.

use std::fmt;

use crate::envelope::{Envelope, RawPayload};
use crate::error::Error;
use crate::event::EventType;
use crate::handler_id::HandlerId;
use crate::headers::Headers;

/// Header of the W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
/// Header of the W3C trace state.
pub const TRACESTATE: &str = "tracestate";

/// A W3C trace context: which trace and span an event was published in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace, 32 lower-case hexadecimal digits.
    pub trace_id: String,
    /// The parent span, 16 lower-case hexadecimal digits.
    pub parent_id: String,
    /// The flags; bit 0 says that the trace is sampled.
    pub flags: u8,
    /// The vendors' state, as received.
    pub state: Option<String>,
}

impl TraceContext {
    /// Reads a `traceparent` header (W3C Trace Context, section 3.2); `None` when it is not valid.
    ///
    /// ```
    /// use relaybus::TraceContext;
    /// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    /// let context = TraceContext::parse(text, None).unwrap();
    /// assert!(context.is_sampled());
    /// assert_eq!(context.to_string(), text);
    /// ```
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut parts = traceparent.trim().split('-');
        let (version, trace_id, parent_id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let zero = |text: &str| text.bytes().all(|b| b == b'0');
        let valid = hex(version, 2)
            && version != "ff"
            // Version 00 has exactly four fields; a later version may add some.
            && (version != "00" || parts.next().is_none())
            && hex(trace_id, 32)
            && !zero(trace_id)
            && hex(parent_id, 16)
            && !zero(parent_id)
            && hex(flags, 2);
        if !valid {
            return None;
        }
        Some(Self {
            trace_id: trace_id.to_owned(),
            parent_id: parent_id.to_owned(),
            flags: u8::from_str_radix(flags, 16).ok()?,
            state: tracestate.filter(|state| !state.is_empty()).map(str::to_owned),
        })
    }

    /// Whether the trace is sampled.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id, self.parent_id, self.flags)
    }
}

/// The trace context that headers carry.
#[must_use]
pub fn trace_context_of(headers: &Headers) -> Option<TraceContext> {
    TraceContext::parse(headers.get(TRACEPARENT)?, headers.get(TRACESTATE))
}

/// Opens spans around publishing, sending and handling.
pub trait Tracer: Send + Sync + 'static {
    /// A publish of these event types begins. The span's headers are stored with the events; headers that the caller
    /// passed win.
    fn publish(&self, event_types: &[EventType]) -> Box<dyn TraceSpan>;

    /// A route sends an event. The span's headers go on the wire in place of the stored ones.
    fn send(&self, transport: &str, destination: &str, event: &Envelope<RawPayload>) -> Box<dyn TraceSpan>;

    /// A handler begins to run.
    fn process(&self, handler: &HandlerId, attempt: u32, event: &Envelope<RawPayload>) -> Box<dyn TraceSpan>;
}

/// A span that a [`Tracer`] opened. Dropping it without [`TraceSpan::finish`] ends it as cancelled.
pub trait TraceSpan: Send + Sync {
    /// Headers that carry the span's context.
    fn headers(&self) -> Vec<(String, String)>;

    /// Runs `poll` with this span as the current one. A handler is polled inside it, so that what it starts joins the trace.
    fn in_scope(&self, poll: &mut dyn FnMut());

    /// Ends the span.
    fn finish(self: Box<Self>, error: Option<&Error>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_the_recommendation_forbids() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(TraceContext::parse(good, None).is_some());
        assert!(TraceContext::parse(&good.replace("00-0", "01-0").replace("-01", "-01-extra"), None).is_some());
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-extra",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(bad, None), None, "{bad}");
        }
    }

    #[test]
    fn reads_headers() {
        let headers = Headers::new([
            (TRACEPARENT, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"),
            (TRACESTATE, "a=1"),
        ])
        .unwrap();
        let context = trace_context_of(&headers).unwrap();
        assert_eq!((context.is_sampled(), context.state.as_deref()), (false, Some("a=1")));
    }
}
