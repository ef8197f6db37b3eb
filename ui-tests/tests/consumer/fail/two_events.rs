//! A consumer of two events.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, OrderShipped)]
async fn ship(_: OrderPlaced) {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
struct OrderShipped {}

fn main() {}
