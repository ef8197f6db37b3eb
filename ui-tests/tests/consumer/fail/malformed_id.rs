//! Ids that cannot be stored.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, id = "")]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, id = "ship#1")]
async fn record(_: OrderPlaced) {}

#[consumer(OrderPlaced, id = "ship\tfast")]
async fn bill(_: OrderPlaced) {}

fn main() {}
