//! Each mistake of one input is reported, and nothing else.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::handlers;
use relaybus::memory::Memory;
use relaybus::registry::HandlerList;

#[consumer(OrderPlaced, id = "a#b", timeout = "soon", concurency = 4)]
fn ship<T>(_: impl Copy) {}

fn list() -> HandlerList<Memory> {
    handlers![ship]
}

fn main() {}
