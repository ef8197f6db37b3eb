//! The attribute on a field or a variant.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {
    #[event(key)]
    order_id: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.changed.v1")]
enum OrderChanged {
    #[event("order.shipped.v1")]
    Shipped { order_id: String },
    Lost {
        #[event(key)]
        order_id: String,
    },
}

fn main() {}
