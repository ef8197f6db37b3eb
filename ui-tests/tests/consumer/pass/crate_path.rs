//! relaybus through a re-export.

mod framework {
    pub(crate) mod events {
        pub(crate) use relaybus as bus;
    }
}

use framework::events::bus::{Event, HandlerContext, consumer, handlers, registry::HandlerList};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", crate = framework::events::bus)]
struct OrderPlaced {}

#[consumer(OrderPlaced, crate = framework::events::bus, transactional, retry(attempts = 2))]
async fn ship(_: OrderPlaced, _: &HandlerContext, _: &mut framework::events::bus::memory::MemoryTransaction) {}

#[test]
fn listed() {
    let list: HandlerList<framework::events::bus::memory::Memory> = handlers![ship];
    assert_eq!(list.entries().len(), 1);
}
