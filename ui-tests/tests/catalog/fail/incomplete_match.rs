//! A consumer of the whole enum that forgets an event.

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

#[consumer(OrderEvents)]
async fn project(event: OrderEvents) {
    match event {
        OrderEvents::OrderPlaced(_) => {}
    }
}

fn main() {}
