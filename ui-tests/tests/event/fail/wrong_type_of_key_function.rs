//! Functions and closures with a result that is no key.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.cancelled.v1", key = Self::key)]
struct OrderCancelled {}

impl OrderCancelled {
    fn key(&self) -> bool {
        true
    }
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.returned.v1", key = |event| event.weight)]
struct OrderReturned {
    weight: f32,
}

fn main() {}
