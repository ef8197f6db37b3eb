//! relaybus through a re-export, in a block inside a function.

mod framework {
    pub(crate) use relaybus as bus;
}

use framework::bus::{Event, consumers, handlers, registry::HandlerList};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", crate = framework::bus)]
struct OrderPlaced {}

#[test]
fn local() {
    struct Shipping;

    #[consumers(crate = framework::bus)]
    impl Shipping {
        #[consumer(OrderPlaced)]
        async fn on_placed(&self, _: OrderPlaced) {}
    }

    let list: HandlerList<framework::bus::memory::Memory> = handlers![Shipping];
    assert_eq!(list.entries().len(), 1);
}
