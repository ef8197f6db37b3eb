//! A route sends what is produced, and names events of its catalog.

use relaybus::{Event, Route, catalog, consume, produce};
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

fn route() {
    let _ = Route::catalog(consume::<OrderEvents>(), "kafka");
    let _ = Route::catalog(produce::<OrderEvents>(), "kafka").wire_type::<UserRegistered>("User");
}

fn main() {}
