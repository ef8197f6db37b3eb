//! What is listed twice.

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
    name: shipping,
    consumes: [OrderEvents::{OrderPlaced, OrderPlaced}, OrderEvents],
    produces: [OrderEvents, self::OrderEvents, OrderEvents],
    handlers: [ship, ship],
}

fn main() {}
