//! Variants under one `cfg` are not alternatives, and a wire name does not hide in a `cfg_attr`.

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
    #[cfg(all())]
    #[wire("Order")]
    OrderPlaced(OrderPlaced),
    #[cfg(all())]
    Again(OrderPlaced),
    #[cfg(all())]
    #[wire("Order")]
    OrderShipped(OrderShipped),
    #[cfg(all())]
    Orderplaced(UserRegistered),
    #[cfg(all())]
    ORDERPlaced(UserRegistered),
}

#[catalog]
enum Users {
    #[cfg_attr(all(), wire("User"))]
    UserRegistered(UserRegistered),
}

fn main() {}
