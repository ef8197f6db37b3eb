//! Variants that do not hold one event.

use relaybus::{Event, catalog};
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
enum Orders {
    OrderPlaced,
    Both(OrderPlaced, OrderShipped),
    OrderShipped { event: OrderShipped },
    Nothing(),
    Numbered(UserRegistered) = 7,
}

fn main() {}
