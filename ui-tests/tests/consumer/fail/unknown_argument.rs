//! Arguments that no macro has, one of them close to one that is there.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, concurency = 4, retries = 5, durable)]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, retry(attempt = 5, jitter = true))]
async fn record(_: OrderPlaced) {}

fn main() {}
