//! Arguments without their value.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, id, retry, timeout, concurrency, order, companion, crate)]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, id =, retry(), timeout =, concurrency =, order = )]
async fn record(_: OrderPlaced) {}

#[consumer(OrderPlaced, retry(attempts, initial_delay, factor =, max_delay))]
async fn bill(_: OrderPlaced) {}

fn main() {}
