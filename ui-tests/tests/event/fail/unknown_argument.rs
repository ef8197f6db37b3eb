//! Arguments that no macro has.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", kee = order_id, partition(3), loud)]
struct OrderPlaced {
    order_id: String,
}

fn main() {}
