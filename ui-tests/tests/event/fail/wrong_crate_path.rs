//! A path at which relaybus is not.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = order_id, crate = framework::bus)]
struct OrderPlaced {
    order_id: String,
}

fn main() {}
