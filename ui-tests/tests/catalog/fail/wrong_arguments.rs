//! Arguments of the attribute, each wrong in one way.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[catalog]
pub enum OrderEvents {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
}

#[catalog(nam = "orders", nam = "x", id = "orders")]
enum A {
    OrderPlaced(OrderPlaced),
}
#[catalog(name = orders, of = "OrderEvents")]
enum B {
    OrderPlaced(OrderPlaced),
}
#[catalog(name = "or ders", name = "orders", OrderPlaced)]
enum C {
    OrderPlaced(OrderPlaced),
}
#[catalog(name, of, crate = "relaybus")]
enum D {
    OrderPlaced(OrderPlaced),
}

fn main() {}
