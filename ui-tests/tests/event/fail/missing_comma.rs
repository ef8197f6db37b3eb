//! Arguments that nothing separates.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1" key = order_id)]
struct OrderPlaced {
    order_id: String,
}

fn main() {}
