//! Two of three events have no JSON schema.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize, schemars::JsonSchema)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[derive(Event, Serialize, Deserialize)]
#[event("changed.v1")]
pub struct Changed<T> {
    to: T,
}

#[catalog(schema)]
pub enum OrderEvents {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
    Changed(Changed<String>),
}

fn main() {}
