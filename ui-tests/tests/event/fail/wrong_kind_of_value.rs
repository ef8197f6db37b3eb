//! Values of a kind that the argument does not take.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = 5 + 5, validate = "check", crate = 7)]
struct OrderPlaced {
    order_id: String,
}

fn main() {}
