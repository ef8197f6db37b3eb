//! Two Rust types with one event type.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderAccepted {}

#[catalog]
enum Orders {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
    OrderAccepted(OrderAccepted),
}

fn main() {}
