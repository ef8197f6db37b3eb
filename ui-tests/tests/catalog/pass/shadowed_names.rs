//! Every name of the prelude and of relaybus taken by something else.

#![allow(unused_macros, reason = "that they are in scope is the case")]

#[allow(unused_imports, reason = "as above")]
use crate::names::*;

macro_rules! concat {
    ($($tokens:tt)*) => {
        compile_error!("the user's macro")
    };
}

mod event {
    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
    #[event("order.placed.v1")]
    pub(super) struct OrderPlaced {}

    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
    #[event("h.v1")]
    pub(super) struct H {}
}
use event::{H, OrderPlaced};

#[::relaybus::catalog]
enum T {
    OrderPlaced(OrderPlaced),
    Self_(H),
}

struct Shipping;

#[::relaybus::consumers(T, concurrency = 4)]
impl THandlers for Shipping {
    async fn on_order_placed(
        &self,
        _: &::relaybus::Envelope<OrderPlaced>,
        _: &::relaybus::HandlerContext,
    ) -> ::relaybus::HandlerResult {
        ::std::result::Result::Ok(())
    }
    async fn on_self_(
        &self,
        _: &::relaybus::Envelope<H>,
        _: &::relaybus::HandlerContext,
    ) -> ::relaybus::HandlerResult {
        ::std::result::Result::Ok(())
    }
}

::relaybus::module! {
    name: module,
    consumes: [T::{OrderPlaced, Self_}],
    produces: [T],
    handlers: [Shipping],
}

#[test]
fn known() {
    assert_eq!(<T as ::relaybus::Catalog>::EVENTS.len(), 2);
    let events = (<T as ::std::convert::From<H>>::from(H {}), <T as ::std::convert::From<_>>::from(OrderPlaced {}));
    assert!(matches!(events, (T::Self_(_), T::OrderPlaced(_))));
    fn contract<M: ::relaybus::Module>() {}
    contract::<module>();
}
