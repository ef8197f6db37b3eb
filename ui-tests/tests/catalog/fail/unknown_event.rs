//! A variant whose type does not exist.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[catalog]
pub enum Orders {
    OrderPlaced(OrderPlaced),
    OrderCancelled(OrderCancelled),
}

fn main() {}
