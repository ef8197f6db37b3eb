//! Keys that are written as something else.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = self.order_id)]
struct OrderPlaced {
    order_id: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1", key = "order_id")]
struct OrderShipped {
    order_id: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.cancelled.v1", key = order_id.clone())]
struct OrderCancelled {
    order_id: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.returned.v1", key = |a, b| a)]
struct OrderReturned {}

fn main() {}
