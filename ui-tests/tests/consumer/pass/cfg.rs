//! Consumers, arguments and attributes that are configured away.

use relaybus::registry::HandlerList;
use relaybus::{Event, HandlerContext, consumer, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[cfg(not(test))]
#[consumer(Missing)]
async fn away(_: Missing) {}

#[consumer(Missing)]
#[cfg(not(test))]
async fn away_below(_: Missing) {}

#[consumer(OrderPlaced, id = "cfg.here")]
#[cfg(test)]
async fn here(#[cfg(not(test))] _: Missing, #[cfg(test)] event: OrderPlaced, #[cfg(test)] _context: &HandlerContext) {
    let _ = event;
}

#[cfg_attr(test, consumer(OrderPlaced, id = "cfg.conditional"))]
async fn conditional(_: OrderPlaced) {}

#[cfg_attr(not(test), consumer(Missing))]
#[allow(dead_code, reason = "not a consumer after all")]
async fn plain(_: OrderPlaced) {}

#[test]
fn listed() {
    let list: HandlerList<relaybus::memory::Memory> = handlers![here, conditional];
    assert_eq!(list.entries()[0].needs.len(), 2);
}
