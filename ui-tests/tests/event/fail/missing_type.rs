//! An event without the text of its type.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event(key = order_id)]
struct OrderShipped {
    order_id: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event]
struct OrderCancelled {}

#[derive(Event, Serialize, Deserialize)]
#[event = "order.returned.v1"]
struct OrderReturned {}

fn main() {}
