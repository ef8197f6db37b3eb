//! Keys that name no field.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = order_ids)]
struct OrderPlaced {
    order_id: String,
    total: u64,
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1", key = key_of_order)]
struct OrderShipped {
    order_id: String,
    total: u64,
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.counted.v1", key = 1)]
struct OrderCounted(u64);

#[derive(Event, Serialize, Deserialize)]
#[event("orders.closed.v1", key = id)]
struct OrdersClosed;

fn main() {}
