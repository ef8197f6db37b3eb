//! Consumed events that no handler takes.

use relaybus::{Event, catalog, consumer};
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

#[catalog]
pub enum UserEvents {
    UserRegistered(UserRegistered),
}

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced) {}

relaybus::module! {
    name: shipping,
    consumes: [OrderEvents, UserEvents],
    handlers: [ship],
}

relaybus::module! {
    name: nobody,
    consumes: [OrderEvents],
}

fn main() {}
