//! Types that are no consumers.

use relaybus::memory::Memory;
use relaybus::registry::HandlerList;
use relaybus::{Event, consumer, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced) {}

struct Shipping;

fn list() -> HandlerList<Memory> {
    handlers![ship, Shipping, OrderPlaced, Vec<u8>]
}

fn main() {}
