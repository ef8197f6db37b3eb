//! Arguments without their value.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key =, validate, crate)]
struct OrderPlaced {
    order_id: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1", key(order_id), validate = )]
struct OrderShipped {
    order_id: String,
}

fn main() {}
