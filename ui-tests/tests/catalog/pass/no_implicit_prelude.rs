//! Nothing of the standard library in scope.

#![no_implicit_prelude]

#[derive(::relaybus::Event, ::serde::Serialize, ::serde::Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[::relaybus::catalog(name = "orders")]
enum Orders {
    #[wire("Order Placed")]
    OrderPlaced(OrderPlaced),
}

#[::relaybus::catalog(of = Orders)]
enum Part {
    OrderPlaced(OrderPlaced),
}

struct Shipping;

#[::relaybus::consumers(Orders, retry(attempts = 3), timeout = "1s", order = "replay")]
impl OrdersHandlers for Shipping {
    async fn on_order_placed(
        &self,
        _: &::relaybus::Envelope<OrderPlaced>,
        _: &::relaybus::HandlerContext,
    ) -> ::relaybus::HandlerResult {
        ::std::result::Result::Ok(())
    }
}

struct Ledger;

#[::relaybus::consumers(Part, transactional)]
impl PartTxHandlers<::relaybus::memory::MemoryTransaction> for Ledger {
    async fn on_order_placed(
        &self,
        _: &::relaybus::Envelope<OrderPlaced>,
        _: &mut ::relaybus::memory::MemoryTransaction,
        _: &::relaybus::HandlerContext,
    ) -> ::relaybus::HandlerResult {
        ::std::result::Result::Ok(())
    }
}

#[::relaybus::consumer(Orders)]
async fn project(event: &::relaybus::Envelope<Orders>) {
    match &event.payload {
        Orders::OrderPlaced(_) => {}
    }
}

::relaybus::module! {
    name: shipping,
    consumes: [Orders::{OrderPlaced}],
    produces: [Part],
    handlers: [Shipping, Ledger, project],
}

#[::std::prelude::v1::test]
fn listed() {
    let list: ::relaybus::registry::HandlerList<::relaybus::memory::Memory> =
        ::relaybus::handlers![Shipping, Ledger, project];
    ::std::assert_eq!(list.entries().len(), 3);
    let part = <Part as ::std::convert::From<OrderPlaced>>::from(OrderPlaced {});
    ::std::assert!(::std::matches!(part, Part::OrderPlaced(_)));
    let whole = <Orders as ::std::convert::From<OrderPlaced>>::from(OrderPlaced {});
    ::std::assert!(::std::matches!(whole, Orders::OrderPlaced(_)));
    fn module<M: ::relaybus::Module>() {}
    module::<shipping>();
}
