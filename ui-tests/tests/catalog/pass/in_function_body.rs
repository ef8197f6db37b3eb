//! A catalog and its handlers inside a function.

use relaybus::{Catalog, Envelope, Event, HandlerContext, HandlerResult, catalog, consumer, consumers, handlers};
use serde::{Deserialize, Serialize};

#[test]
fn local() {
    #[derive(Event, Serialize, Deserialize)]
    #[event("order.placed.v1")]
    struct OrderPlaced {}

    #[catalog]
    enum Orders {
        OrderPlaced(OrderPlaced),
    }

    struct Shipping;

    #[consumers(Orders)]
    impl OrdersHandlers for Shipping {
        async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
            Ok(())
        }
    }

    #[consumer(Orders)]
    async fn project(_: Orders) {}

    relaybus::module! {
        name: shipping,
        consumes: [Orders],
        handlers: [Shipping, project],
    }

    let list: relaybus::registry::HandlerList<relaybus::memory::Memory> = handlers![Shipping, project];
    assert_eq!(list.entries().len(), 2);
    assert!(matches!(Orders::from(OrderPlaced {}), Orders::OrderPlaced(_)));
    assert_eq!(Orders::EVENTS.len(), 1);
    fn contract<M: relaybus::Module>() {}
    contract::<shipping>();
}
