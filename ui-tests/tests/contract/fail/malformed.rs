//! Contracts that are not written as one.

use relaybus::{Event, catalog, consumer};
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

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced) {}

relaybus::module! {
    consumes: [OrderEvents],
}
relaybus::module! {
    name: a,
    consume: [OrderEvents],
    provides: [OrderEvents],
    consumes: OrderEvents,
    name: b,
}
relaybus::module! {
    name: "c",
    consumes = [OrderEvents],
    handlers: [ship(), "ship"; 7],
}
relaybus::module! {
    name: d,
    consumes: [OrderEvents::{}, OrderEvents::{"OrderPlaced"}, 7]
    produces: [OrderEvents OrderEvents],
}
relaybus::module! { 7 }

fn main() {}
