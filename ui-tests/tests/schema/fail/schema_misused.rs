//! `schema` is a word of its own, of catalogs.

use relaybus::{Event, catalog, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize, schemars::JsonSchema)]
#[event("order.placed.v1", schema)]
pub struct OrderPlaced {}

#[catalog(schema = true)]
enum A {
    OrderPlaced(OrderPlaced),
}
#[catalog(schema("orders.json"))]
enum B {
    OrderPlaced(OrderPlaced),
}
#[catalog(schema, name = "c", schema)]
enum C {
    OrderPlaced(OrderPlaced),
}
#[catalog(schemas)]
enum D {
    OrderPlaced(OrderPlaced),
}
#[consumer(OrderPlaced, schema)]
async fn ship(_: OrderPlaced) {}

fn main() {}
