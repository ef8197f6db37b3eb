//! Arguments of other macros, and those of `retry` outside it.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, key = order_id, attempts = 5)]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, retry(timeout = "30s", OrderPlaced))]
async fn record(_: OrderPlaced) {}

fn main() {}
