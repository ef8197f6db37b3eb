//! Catalogs, handlers and contracts out of macros by example.

use relaybus::{Catalog, Envelope, Event, HandlerContext, HandlerResult, catalog, consumers, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

macro_rules! domain {
    ($catalog:ident, $handlers:ident, $type:ident, $module:ident, $wire:literal, $($variant:ident $event:ty),+) => {
        #[catalog(name = $wire)]
        enum $catalog {
            $(
                #[wire($wire)]
                $variant($event),
            )+
        }

        struct $type;

        #[consumers($catalog, prefix = $wire, concurrency = 4)]
        impl $handlers for $type {
            async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
                Ok(())
            }
        }

        relaybus::module! {
            name: $module,
            consumes: [$catalog],
            produces: [$catalog::{$($variant),+}],
            handlers: [$type],
        }
    };
}
domain!(Orders, OrdersHandlers, Shipping, shipping, "orders", OrderPlaced OrderPlaced);

macro_rules! contract {
    ($catalog:path, $handler:path) => {
        relaybus::module! {
            name: again,
            consumes: [$catalog],
            handlers: [$handler],
        }
    };
}
contract!(self::Orders, self::Shipping);

#[test]
fn made() {
    assert_eq!((Orders::NAME, Orders::EVENTS[0].wire), ("orders", Some("orders")));
    let list: relaybus::registry::HandlerList<relaybus::memory::Memory> = handlers![Shipping];
    assert_eq!((list.entries()[0].id, list.entries()[0].options.concurrency), ("orders.on_order_placed", Some(4)));
    assert!(matches!(Orders::from(OrderPlaced {}), Orders::OrderPlaced(_)));
    fn module<M: relaybus::Module>() {}
    module::<shipping>();
    module::<again>();
}
