//! Wire names that clash, or are none.

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
    #[wire("Order")]
    OrderPlaced(OrderPlaced),
    #[wire("Order")]
    OrderShipped(OrderShipped),
    #[wire("")]
    UserRegistered(UserRegistered),
}

#[catalog]
enum Users {
    #[wire = "User"]
    #[wire("User")]
    UserRegistered(UserRegistered),
    #[wire(7)]
    OrderPlaced(OrderPlaced),
}

fn main() {}
