//! A list with an event that the catalog does not have.

use relaybus::{Event, MemoryStore, RelayBus, catalog};
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

fn publish(bus: &RelayBus<MemoryStore>, tx: &mut MemoryTransaction) {
    let orders = bus.for_catalog::<OrderEvents>();
    let _ = orders.publish_all(tx, [OrderPlaced {}]);
    let _ = orders.publish_all(tx, [UserRegistered {}]);
}

use relaybus::memory::MemoryTransaction;

fn main() {}
