//! The impl of a trait.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

trait Ships {
    fn ship(&self);
}

#[consumers]
impl Ships for Shipping {
    fn ship(&self) {}
}

fn main() {}
