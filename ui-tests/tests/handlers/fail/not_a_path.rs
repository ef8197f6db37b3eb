//! Everything that is not a path.

use relaybus::memory::Memory;
use relaybus::registry::HandlerList;
use relaybus::{Event, consumer, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced) {}

fn list() -> HandlerList<Memory> {
    handlers![ship(), &ship, "shipping.ship", |event: OrderPlaced| async {}, [ship], 5]
}

fn main() {}
