//! An event of the catalog that the view does not publish.

use relaybus::{Event, MemoryStore, RelayBus, catalog};
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

fn publish(bus: &RelayBus<MemoryStore>, tx: &mut MemoryTransaction) {
    let placed = bus.for_catalog::<OrderEvents>().only::<(OrderPlaced,)>();
    let _ = placed.publish(tx, OrderPlaced {});
    let _ = placed.publish(tx, OrderShipped {});
    let _ = placed.publish_all(tx, [OrderShipped {}]);
}

use relaybus::memory::MemoryTransaction;

fn main() {}
