//! A field as the key of an enum.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.changed.v1", key = order_id)]
enum OrderChanged {
    Placed { order_id: String },
    Shipped { order_id: String },
}

fn main() {}
