//! Validation by a function that is not there, and by ones of another shape.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", validate = check_order)]
struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1", validate = is_valid)]
struct OrderShipped {}

fn is_valid(_: &OrderShipped) -> bool {
    true
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.cancelled.v1", validate = by_value)]
struct OrderCancelled {}

fn by_value(_: OrderCancelled) -> Result<(), String> {
    Ok(())
}

fn main() {}
