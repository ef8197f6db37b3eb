//! A transaction handle in a consumer without a transaction.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::memory::MemoryTransaction;

#[consumer(OrderPlaced)]
async fn record(_: OrderPlaced, _: &mut MemoryTransaction) {}

fn main() {}
