//! The attribute on something else.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
struct Ship;

#[consumer(OrderPlaced)]
impl Ship {}

#[consumer(OrderPlaced)]
mod shipping {}

fn main() {}
