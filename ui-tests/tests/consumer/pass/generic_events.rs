//! Events with parameters, each a consumer of its own.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("changed.v1")]
struct Changed<A, B = u8> {
    before: A,
    after: B,
}

#[consumer(Changed<Vec<OrderPlaced>, Option<u64>>)]
async fn nested(event: Changed<Vec<OrderPlaced>, Option<u64>>) {
    let _ = (event.before, event.after);
}

#[consumer(Changed<u8>, id = "changed.bytes")]
async fn bytes(_: &relaybus::Envelope<Changed<u8>>) {}
