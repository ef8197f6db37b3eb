//! A part of a catalog with an event that the whole does not have, and a part of no catalog.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[derive(Event, Serialize, Deserialize)]
#[event("user.registered.v1")]
pub struct UserRegistered {}

#[catalog]
pub enum OrderEvents {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
}

#[catalog(of = OrderEvents)]
enum Fulfilment {
    OrderPlaced(OrderPlaced),
    UserRegistered(UserRegistered),
}

#[catalog(of = OrderPlaced)]
enum Placed {
    OrderPlaced(OrderPlaced),
}

fn main() {}
