//! An event whose schema lacks that of a field, and a generic one whose parameter has none.

use relaybus::{Event, catalog};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Address {}

#[derive(Event, Serialize, Deserialize, JsonSchema)]
#[event("order.placed.v1")]
pub struct OrderPlaced {
    to: Address,
}

#[derive(Event, Serialize, Deserialize, JsonSchema)]
#[event("changed.v1")]
pub struct Changed<T> {
    to: T,
}

#[catalog(schema)]
pub enum OrderEvents {
    OrderPlaced(OrderPlaced),
    Changed(Changed<Address>),
}

fn main() {}
