//! An unsafe function.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
async unsafe fn ship(_: OrderPlaced) {}

fn main() {}
