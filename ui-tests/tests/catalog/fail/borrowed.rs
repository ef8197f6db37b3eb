//! Events that are borrowed or not named.

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
    OrderPlaced(&'static OrderPlaced),
    OrderShipped(impl Event),
}

fn main() {}
