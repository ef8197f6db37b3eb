//! Type parameters.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
async fn ship<T, const N: usize>(_: OrderPlaced, _: [T; N]) {}

fn main() {}
