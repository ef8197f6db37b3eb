//! No runs at all.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, concurrency = 0)]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, concurrency = 1.5)]
async fn record(_: OrderPlaced) {}

fn main() {}
