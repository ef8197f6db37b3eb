//! The attribute, twice.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[catalog]
#[relaybus::catalog(name = "orders")]
enum Orders {
    OrderPlaced(OrderPlaced),
}

fn main() {}
