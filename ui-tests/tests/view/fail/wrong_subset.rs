//! Lists that are no events of the catalog.

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
    let _ = orders.only::<(OrderPlaced, UserRegistered)>();
    let _ = orders.only::<OrderPlaced>();
    let _ = orders.only::<()>();
    let _ = tx;
}

use relaybus::memory::MemoryTransaction;

fn main() {}
