//! Types that are no catalogs.

use relaybus::{Catalog, Event, MemoryStore, RelayBus, RelayBusBuilder, catalog, consume};
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

fn declare(bus: &RelayBus<MemoryStore>, builder: RelayBusBuilder<MemoryStore>) {
    let _ = bus.for_catalog::<OrderPlaced>();
    let _ = builder.catalog(consume::<String>()).catalog(OrderEvents::NAME);
}

fn main() {}
