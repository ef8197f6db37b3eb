//! Derived without serde.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[derive(Event, Serialize)]
#[event("order.shipped.v1")]
struct OrderShipped {}

#[derive(Deserialize)]
struct Unused;

fn main() {}
