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
#[event("order.placed.v1", key = order_id, validate = check)]
struct OrderPlaced {
    /// The order.
    order_id: u64,
}

fn check(event: &OrderPlaced) -> Result<(), String> {
    if event.order_id > 0 { Ok(()) } else { Err("an order has a number".to_owned()) }
}

mod handlers {
    // The derives of serde allow lints, which `forbid` refuses; generated code of ours does not.
    #![forbid(missing_debug_implementations, unreachable_pub, unused, unused_qualifications, unused_lifetimes)]
    #![forbid(elided_lifetimes_in_paths, single_use_lifetimes, let_underscore_drop, non_camel_case_types)]

    use relaybus::memory::MemoryTransaction;
    use relaybus::store::HandleOf as _;
    use relaybus::{Envelope, HandlerContext, State, consumer};

    use super::OrderPlaced;

    /// Ships it.
    ///
    /// # Errors
    /// When it is late.
    #[consumer(
        OrderPlaced,
        id = "strict.ship",
        transactional,
        retry(attempts = 500_000, initial_delay = "2s", factor = 2.0, max_delay = "50000m"),
        timeout = "30s",
        concurrency = 40_000
    )]
    pub(super) async fn ship(
        event: &Envelope<OrderPlaced>,
        tx: &mut MemoryTransaction,
        context: &HandlerContext,
        names: State<Vec<String>>,
    ) -> Result<(), std::io::Error> {
        std::future::ready(()).await;
        let late = names.len() as u64 > event.payload.order_id || context.attempt() > 5;
        if late && !format!("{:?}", tx.handle()).is_empty() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Notes it.
    #[consumer(OrderPlaced)]
    pub(super) async fn note(_: Envelope<OrderPlaced>) {
        std::future::ready(()).await;
    }
}
