//! A wire name under which another event travels already.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[catalog]
enum Orders {
    OrderPlaced(OrderPlaced),
    #[wire("order.placed.v1")]
    OrderShipped(OrderShipped),
}

fn main() {}
