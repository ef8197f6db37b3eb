//! The attribute names another catalog than the trait is of.

use relaybus::{Envelope, Event, HandlerContext, HandlerResult, catalog, consumers};
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

struct Users;

#[consumers(OrderEvents)]
impl UserEventsHandlers for Users {
    async fn on_user_registered(&self, _: &Envelope<UserRegistered>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

fn main() {}
