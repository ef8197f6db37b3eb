//! Names that are no events of the catalog.

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
    consumes: [OrderEvents::{OrderPlaced, OrderShiped}],
    produces: [OrderEvents::{UserRegistered}],
    handlers: [ship],
}

fn main() {}
