//! Catalogs that are none.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

relaybus::module! {
    name: shipping,
    consumes: [OrderPlaced],
    produces: [Missing],
}

fn main() {}
