//! Several mistakes, reported together; what depends on the catalog fails with none of its own.

use relaybus::{Event, EventStore, RelayBus, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[catalog(name = "", of = 7)]
enum Orders {
    OrderPlaced(OrderPlaced),
    OrderShipped,
    #[wire(Shipped)]
    Shipped(OrderShipped),
}

fn use_it<S: EventStore>(bus: &RelayBus<S>) {
    let _ = bus.for_catalog::<Orders>().publish_detached(OrderPlaced {});
}

fn main() {}
