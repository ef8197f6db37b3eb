//! Arguments that nothing separates.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced id = "ship")]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, id "record", timeout = "1s")]
async fn record(_: OrderPlaced) {}

fn main() {}
