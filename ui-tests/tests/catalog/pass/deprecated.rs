//! Events and variants that are on their way out: who uses them is told so, not who declares or handles them.
#![deny(warnings, missing_docs, clippy::pedantic)]
#![allow(unreachable_pub, reason = "as in a library")]

use relaybus::{Catalog, Envelope, Event, HandlerContext, HandlerResult, catalog, consumers, handlers};
use serde::{Deserialize, Serialize};

/// An order was placed.
#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = order_id)]
#[deprecated(note = "publish `OrderPlacedV2`")]
pub struct OrderPlaced {
    /// The order.
    #[deprecated(note = "it is a number now")]
    pub order_id: String,
}

/// The events of orders.
#[catalog]
pub enum OrderEvents {
    /// An order was placed.
    #[deprecated(note = "publish `OrderPlacedV2`")]
    #[allow(deprecated, reason = "it is declared, not used")]
    OrderPlaced(OrderPlaced),
}

/// Handles the events of orders.
pub struct Shipping;

#[allow(deprecated, reason = "deployed publishers still send it")]
#[consumers(OrderEvents)]
impl OrderEventsHandlers for Shipping {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn they_are_handled_as_before() {
    assert_eq!(OrderEvents::EVENTS.len(), 1);
    let list: relaybus::registry::HandlerList<relaybus::memory::Memory> = handlers![Shipping];
    assert_eq!(list.entries().iter().map(|entry| entry.id).collect::<Vec<_>>(), ["Shipping.on_order_placed"]);
}
