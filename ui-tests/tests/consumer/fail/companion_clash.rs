//! A type of the function's name, which `companion` makes room for.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[allow(non_camel_case_types)]
struct ship {}

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced) {}

fn main() {}
