//! The event as its text, or as a value.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer("order.placed.v1")]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced {})]
async fn record(_: OrderPlaced) {}

fn main() {}
