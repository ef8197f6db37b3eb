//! Lints that generated code must not need a rest from; clippy reads this file too.

#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused,
    unused_qualifications,
    unused_lifetimes,
    elided_lifetimes_in_paths,
    single_use_lifetimes,
    let_underscore_drop,
    clippy::all,
    clippy::pedantic,
    clippy::nursery
)]
#![forbid(unsafe_code, missing_docs)]

use relaybus::Event;
use serde::{Deserialize, Serialize};

/// An order was placed.
#[derive(Clone, Debug, PartialEq, Eq, Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

/// An order was shipped.
#[derive(Clone, Debug, PartialEq, Eq, Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
struct OrderShipped {}

mod catalogs {
    // The derives of serde allow lints, which `forbid` refuses; generated code of ours does not.
    #![forbid(missing_debug_implementations, unreachable_pub, unused, unused_qualifications, unused_lifetimes)]
    #![forbid(elided_lifetimes_in_paths, single_use_lifetimes, let_underscore_drop, non_camel_case_types)]

    use relaybus::memory::MemoryTransaction;
    use relaybus::store::HandleOf as _;
    use relaybus::{Catalog, Envelope, HandlerContext, HandlerResult, catalog, consumer, consumers};

    use super::{OrderPlaced, OrderShipped};

    /// The events of orders.
    #[catalog]
    #[derive(Clone, Debug)]
    pub(super) enum OrderEvents {
        /// One was placed.
        OrderPlaced(OrderPlaced),
        /// One was shipped.
        #[wire("Order Shipped")]
        OrderShipped(OrderShipped),
    }

    /// A part of them that only this module knows, and of which it uses nothing but the handlers.
    #[catalog(of = OrderEvents)]
    #[derive(Debug)]
    enum Placements {
        /// One was placed.
        OrderPlaced(OrderPlaced),
    }

    /// Ships orders.
    #[derive(Debug)]
    pub(super) struct Shipping;

    #[consumers(OrderEvents, retry(attempts = 50_000, max_delay = "50000m"), timeout = "30s", concurrency = 10_000)]
    impl OrderEventsHandlers for Shipping {
        async fn on_order_placed(&self, event: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
            std::future::ready(()).await;
            if format!("{event:?}").is_empty() { Err("nothing".into()) } else { Ok(()) }
        }
        async fn on_order_shipped(&self, _: &Envelope<OrderShipped>, context: &HandlerContext) -> HandlerResult {
            std::future::ready(()).await;
            if context.attempt() > 2 { Err(std::fmt::Error.into()) } else { Ok(()) }
        }
    }

    /// Books orders.
    #[derive(Debug)]
    struct Ledger;

    #[consumers(Placements)]
    impl PlacementsTxHandlers<MemoryTransaction> for Ledger {
        async fn on_order_placed(
            &self,
            _: &Envelope<OrderPlaced>,
            tx: &mut MemoryTransaction,
            _: &HandlerContext,
        ) -> HandlerResult {
            std::future::ready(()).await;
            let _unused = tx.handle();
            Ok(())
        }
    }

    /// Notes them.
    #[consumer(OrderEvents)]
    pub(super) async fn note(event: OrderEvents) {
        std::future::ready(event).await;
    }

    relaybus::module! {
        name: shipping,
        consumes: [OrderEvents],
        produces: [OrderEvents::{OrderShipped}],
        handlers: [Shipping, Ledger, note],
    }

    #[test]
    fn is_used() {
        let placed = OrderEvents::OrderPlaced(OrderPlaced {});
        let all = [placed, OrderShipped {}.into()];
        assert!(matches!(&all, [OrderEvents::OrderPlaced(_), OrderEvents::OrderShipped(_)]));
        assert!(matches!(OrderPlaced {}.into(), Placements::OrderPlaced(_)));
        assert_eq!(OrderEvents::NAME.len() + format!("{Shipping:?}{Ledger:?}").len(), 25);
    }
}
