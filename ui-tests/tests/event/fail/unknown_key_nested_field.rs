//! A field that the nested type does not have.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = customer.identifier)]
struct OrderPlaced {
    customer: Customer,
}

#[derive(Serialize, Deserialize)]
struct Customer {
    id: String,
}

fn main() {}
