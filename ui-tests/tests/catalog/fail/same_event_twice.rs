//! Two variants of one event, and two that one method would handle.

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
    Placed(OrderPlaced),
    OrderShipped(OrderShipped),
    Ordered(OrderPlaced),
    Order_shipped(UserRegistered),
}

fn main() {}
