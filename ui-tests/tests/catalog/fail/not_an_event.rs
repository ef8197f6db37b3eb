//! A variant whose type is no event.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

pub struct Plain;

#[catalog]
pub enum Orders {
    OrderPlaced(OrderPlaced),
    Plain(Plain),
}

fn main() {}
