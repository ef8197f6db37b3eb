//! A transaction handle without `&mut`.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::memory::MemoryTransaction;

#[consumer(OrderPlaced, transactional)]
async fn record(_: OrderPlaced, _: MemoryTransaction) {}

fn main() {}
