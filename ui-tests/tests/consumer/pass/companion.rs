//! A function whose name is taken by a type or a module.

use relaybus::registry::HandlerList;
use relaybus::{Event, consumer, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

mod place_order {
    pub(super) fn helper() {}
}

#[consumer(OrderPlaced, companion = PlaceOrder)]
async fn place_order(_: OrderPlaced) {
    place_order::helper();
}

#[test]
fn listed() {
    let list: HandlerList<relaybus::memory::Memory> = handlers![PlaceOrder];
    assert!(list.entries()[0].id.ends_with("companion::place_order"));
}
