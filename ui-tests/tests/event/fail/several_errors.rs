//! Each mistake of one input is reported.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order placed", kay = order_id, key = order_idd, validate)]
struct OrderPlaced {
    order_id: String,
    #[event(key)]
    other: String,
}

fn main() {}
