//! Everything that is not an enum.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[catalog]
struct Orders(OrderPlaced);

#[catalog]
fn orders() {}

#[catalog]
mod inner {}

fn main() {}
