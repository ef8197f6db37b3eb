//! A consumer of nothing.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer]
async fn ship(_: OrderPlaced) {}

#[consumer(id = "shipping.record", transactional)]
async fn record(_: OrderPlaced) {}

fn main() {}
