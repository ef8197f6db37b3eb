//! A consumer inside a function.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::handlers;

#[test]
fn local() {
    struct Local;

    #[consumer(OrderPlaced)]
    async fn inner(_: OrderPlaced, _: relaybus::State<Local>) {}

    let list: relaybus::registry::HandlerList<relaybus::memory::Memory> = handlers![inner];
    assert_eq!(list.entries().len(), 1);
}
