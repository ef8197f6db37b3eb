//! Several blocks of one type, each under a name of its own.

#![deny(warnings)]

use relaybus::memory::{Memory, MemoryTransaction};
use relaybus::registry::HandlerList;
use relaybus::{Envelope, Event, HandlerContext, HandlerResult, catalog, consumers, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}
#[derive(Event, Serialize, Deserialize)]
#[event("order.returned.v1")]
struct OrderReturned {}

#[catalog]
enum Orders {
    OrderPlaced(OrderPlaced),
}
#[catalog]
enum Returns {
    OrderReturned(OrderReturned),
}

struct Shipping;

#[consumers]
impl Shipping {
    #[consumer(OrderPlaced, id = "shipping.note")]
    async fn note(&self, _: OrderPlaced) {}
}
#[consumers(companion = Notes)]
impl Shipping {
    #[consumer(OrderReturned, id = "shipping.forget")]
    async fn forget(&self, _: OrderReturned) {}
}
#[consumers(Orders, companion = ShippingOrders)]
impl OrdersHandlers for Shipping {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}
#[consumers(Returns, prefix = "returns", companion = r#ShippingReturns)]
impl ReturnsTxHandlers<MemoryTransaction> for Shipping {
    async fn on_order_returned(
        &self,
        _: &Envelope<OrderReturned>,
        _: &mut MemoryTransaction,
        _: &HandlerContext,
    ) -> HandlerResult {
        Ok(())
    }
}
#[cfg(not(test))]
#[consumers(companion = Nothing)]
impl Missing {}

relaybus::module! {
    name: shipping,
    consumes: [Orders, Returns],
    handlers: [Shipping, Notes, ShippingOrders, ShippingReturns],
}

#[test]
fn listed() {
    let list: HandlerList<Memory> = handlers![Shipping, Notes, ShippingOrders, ShippingReturns];
    let ids: Vec<_> = list.entries().iter().map(|entry| entry.id).collect();
    let expected = ["shipping.note", "shipping.forget", "Shipping.on_order_placed", "returns.on_order_returned"];
    assert_eq!(ids, expected);
    assert!(matches!(
        (OrderPlaced {}.into(), OrderReturned {}.into()),
        (Orders::OrderPlaced(_), Returns::OrderReturned(_))
    ));
    fn module<M: relaybus::Module>() {}
    module::<shipping>();
}
