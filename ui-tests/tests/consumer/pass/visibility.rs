//! Companions follow their function: visibility, re-export, rename.

use relaybus::handlers;
use relaybus::registry::HandlerList;

pub(crate) mod shipping {
    use relaybus::{Event, consumer};
    use serde::{Deserialize, Serialize};

    #[derive(Event, Serialize, Deserialize)]
    #[event("order.placed.v1")]
    pub(crate) struct OrderPlaced {}

    #[consumer(OrderPlaced, id = "visible.ship")]
    pub(crate) async fn ship(_: OrderPlaced) {}

    mod inner {
        #[relaybus::consumer(super::OrderPlaced, id = "visible.pack")]
        pub(in crate::consumer_visibility) async fn pack(_: super::OrderPlaced) {}
    }
    pub(super) use inner::pack as wrap;
}

use shipping::ship as send;

#[test]
fn listed() {
    let list: HandlerList<relaybus::memory::Memory> = handlers![send, shipping::wrap];
    let ids: Vec<_> = list.entries().iter().map(|entry| entry.id).collect();
    assert_eq!(ids, ["visible.ship", "visible.pack"]);
}
