//! The event taken twice.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::Envelope;

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced, _: &Envelope<OrderPlaced>) {}

fn main() {}
