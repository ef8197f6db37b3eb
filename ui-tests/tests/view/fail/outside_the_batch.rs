//! An event that the list of a batch does not have, and a batch of another list.

use relaybus::memory::MemoryTransaction;
use relaybus::{Event, MemoryStore, RelayBus, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}
#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}
#[derive(Event, Serialize, Deserialize)]
#[event("order.cancelled.v1")]
pub struct OrderCancelled {}

#[catalog]
pub enum OrderEvents {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
    OrderCancelled(OrderCancelled),
}

fn publish(bus: &RelayBus<MemoryStore>, tx: &mut MemoryTransaction) {
    let orders = bus.for_catalog::<OrderEvents>();
    let placed = orders.only::<(OrderPlaced, OrderShipped)>();
    let _ = placed.batch().with(OrderPlaced {}).with(OrderCancelled {});
    let _ = placed.publish_batch(tx, orders.only::<(OrderCancelled,)>().batch());
}

fn main() {}
