//! An enum that is an event and a catalog.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[catalog]
#[derive(Event, Serialize, Deserialize)]
#[event("orders.v1")]
enum Orders {
    OrderPlaced(OrderPlaced),
}

fn main() {}
