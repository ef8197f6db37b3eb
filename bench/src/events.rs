//! The events that the benchmarks of stores write: the same for every side.

use std::sync::Arc;

use relaybus::store::NewEvent;
use relaybus::{Envelope, EventId, EventType, HandlerId, Headers, RawPayload, Timestamp};

pub(crate) const HANDLER: &str = "send-confirmation";
pub(crate) const PAYLOAD: &str = r#"{"orderId":"o-1234567","customer":"c-987654","total":12999,"currency":"EUR","lines":[{"sku":"A-1","quantity":2},{"sku":"B-22","quantity":1}],"note":"leave it"}"#;
pub(crate) const HEADERS: &str =
    r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tenant":"acme"}"#;

pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Ids as the bus makes them: rising with time.
pub(crate) fn id(number: usize) -> String {
    format!("0192f5c4-{:04x}-7{:03x}-8000-{:012x}", (number >> 12) & 0xffff, number & 0xfff, number)
}

pub(crate) fn event(number: usize, handlers: &Arc<[HandlerId]>, now: Timestamp) -> NewEvent {
    let mut envelope = Envelope::new(
        EventId::stored(id(number)),
        EventType::from_static("order.placed.v1"),
        "bench",
        RawPayload::stored(PAYLOAD),
        now,
    );
    envelope.headers = Headers::stored(HEADERS.to_owned());
    let mut event = NewEvent::new(envelope, handlers.clone(), now);
    event.fresh_id = true;
    event
}
