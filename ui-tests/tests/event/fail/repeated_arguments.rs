//! Each argument given twice, in one attribute or in two.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = order_id, key = order_id)]
#[event("order.placed.v2", validate = check, validate = check, crate = relaybus, crate = relaybus)]
struct OrderPlaced {
    order_id: String,
}

fn check(_: &OrderPlaced) -> Result<(), String> {
    Ok(())
}

fn main() {}
