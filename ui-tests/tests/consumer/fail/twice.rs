//! The attribute twice on one function.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
#[consumer(OrderPlaced, id = "again")]
async fn ship(_: OrderPlaced) {}

fn main() {}
