//! Fields of a type that is no key.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = total)]
struct OrderPlaced {
    total: f64,
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1", key = parcel.lines)]
struct OrderShipped {
    parcel: Parcel,
}

#[derive(Serialize, Deserialize)]
struct Parcel {
    lines: Vec<u8>,
}

fn main() {}
