//! A consumer of the whole enum that takes one of its events.

use relaybus::{Envelope, Event, catalog, consumer};
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

#[consumer(OrderEvents)]
async fn project(event: &Envelope<OrderPlaced>) {}

#[consumer(OrderEvents)]
async fn other(event: OrderPlaced) {}

fn main() {}
