//! Retry settings that make no sense.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, retry(attempts = 0, factor = 0.5, initial_delay = "1m", max_delay = "30s"))]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, retry(attempts = -1, factor = -2.0))]
async fn record(_: OrderPlaced) {}

#[consumer(OrderPlaced, retry(attempts = 4294967296, factor = 1e999))]
async fn bill(_: OrderPlaced) {}

fn main() {}
