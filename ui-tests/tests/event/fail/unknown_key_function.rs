//! A function that is not there, and one that takes something else.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = Self::key)]
struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1", key = keys::of_shipped)]
struct OrderShipped {}

mod keys {
    pub fn of_shipped(_: &str) -> String {
        String::new()
    }
}

fn main() {}
