//! Handlers of events that the module does not consume.

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

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced) {}

mod users {
    #[relaybus::consumer(crate::UserRegistered)]
    pub(crate) async fn welcome(_: crate::UserRegistered) {}
}

#[consumer(OrderEvents)]
async fn project(_: OrderEvents) {}

relaybus::module! {
    name: shipping,
    consumes: [OrderEvents::{OrderPlaced}],
    handlers: [ship, users::welcome, project],
}

fn main() {}
