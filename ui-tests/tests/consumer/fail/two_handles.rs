//! Two transaction handles.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::AnyTransaction;
use relaybus::memory::MemoryTransaction;

#[consumer(OrderPlaced, transactional)]
async fn record(_: OrderPlaced, _: &mut MemoryTransaction, _: &mut AnyTransaction) {}

fn main() {}
