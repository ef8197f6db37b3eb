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

mod handlers {
    // The derives of serde allow lints, which `forbid` refuses; generated code of ours does not.
    #![forbid(missing_debug_implementations, unreachable_pub, unused, unused_qualifications, unused_lifetimes)]
    #![forbid(elided_lifetimes_in_paths, single_use_lifetimes, let_underscore_drop, non_camel_case_types)]

    use relaybus::memory::MemoryTransaction;
    use relaybus::store::HandleOf as _;
    use relaybus::{Envelope, consumers};

    use super::OrderPlaced;

    /// Ships orders.
    #[derive(Debug)]
    pub(super) struct Shipping {
        limit: u32,
    }

    #[consumers]
    impl Shipping {
        /// Ships one.
        ///
        /// # Errors
        /// When there is no room.
        #[consumer(OrderPlaced, transactional, concurrency = 10_000)]
        pub(super) async fn on_placed(
            &self,
            event: Envelope<OrderPlaced>,
            tx: &mut MemoryTransaction,
        ) -> Result<(), std::fmt::Error> {
            std::future::ready(()).await;
            let text = format!("{event:?}{:?}", tx.handle());
            if self.limit as usize > text.len() { Ok(()) } else { Err(std::fmt::Error) }
        }
    }

    #[test]
    fn is_built() {
        assert_eq!(Shipping { limit: 1 }.limit, 1);
    }
}
