//! A type that does not exist.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlacd)]
async fn ship(_: OrderPlaced) {}

fn main() {}
