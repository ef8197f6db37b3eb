//! relaybus under another path.

mod framework {
    pub(super) mod inner {
        pub(in super::super) use ::relaybus as events;
    }
}
use framework::inner::events;

use events::{Catalog, Envelope, Event, HandlerContext, HandlerResult};

#[derive(Event, serde::Serialize, serde::Deserialize)]
#[event("order.placed.v1", crate = events)]
struct OrderPlaced {}

#[events::catalog(crate = framework::inner::events)]
enum Orders {
    OrderPlaced(OrderPlaced),
}

struct Shipping;

#[events::consumers(Orders, crate = events, prefix = "shipping")]
impl OrdersHandlers for Shipping {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

events::module! {
    name: shipping,
    consumes: [Orders],
    handlers: [Shipping],
}

#[test]
fn found() {
    let list: events::registry::HandlerList<events::memory::Memory> = events::handlers![Shipping];
    assert_eq!(list.entries()[0].id, "shipping.on_order_placed");
    let from = Orders::from(OrderPlaced {});
    assert!(matches!(from, Orders::OrderPlaced(_)) && Orders::NAME == "Orders");
    fn module<M: events::Module>() {}
    module::<shipping>();
}
