//! Variants, catalogs and handlers that are configured away, and alternatives.

use relaybus::{Catalog, Envelope, Event, HandlerContext, HandlerResult, catalog, consumers, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[catalog]
enum Orders {
    #[cfg(test)]
    OrderPlaced(OrderPlaced),
    #[cfg(not(test))]
    OrderPlaced(Missing),
    #[cfg(not(test))]
    #[wire("Order Shipped")]
    OrderShipped(Absent),
}

#[catalog]
#[cfg(not(test))]
enum Nothing {
    OrderPlaced(Missing),
}

#[cfg(not(test))]
#[catalog]
enum Nothing {
    OrderPlaced(Missing),
}

struct Shipping;

#[consumers(Orders)]
#[cfg(test)]
impl OrdersHandlers for Shipping {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

#[consumers(Missing)]
#[cfg(not(test))]
impl MissingHandlers for Shipping {}

#[test]
fn one_is_left() {
    assert_eq!(Orders::EVENTS.len(), 1);
    assert!(matches!(OrderPlaced {}.into(), Orders::OrderPlaced(_)));
    let list: relaybus::registry::HandlerList<relaybus::memory::Memory> = handlers![Shipping];
    assert_eq!(list.entries().iter().map(|entry| entry.id).collect::<Vec<_>>(), ["Shipping.on_order_placed"]);
}
