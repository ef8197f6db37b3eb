//! Roles with events that the catalog does not have.

use relaybus::{Event, MemoryStore, RelayBusBuilder, catalog, consume, produce};
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

fn declare(builder: RelayBusBuilder<MemoryStore>) {
    let _ = builder
        .catalog(consume::<OrderEvents>().only::<(UserRegistered,)>())
        .catalog(produce::<OrderEvents>().only::<(OrderPlaced, UserRegistered)>())
        .catalog(catalog::<OrderEvents>().only::<OrderPlaced>());
}

fn main() {}
