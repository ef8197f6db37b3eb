//! Lints that generated code must not need a rest from; clippy reads this file too.

#![deny(warnings, missing_docs, unused_qualifications, clippy::all, clippy::pedantic, clippy::nursery)]
#![forbid(unsafe_code, missing_docs, unreachable_pub, unused, unused_lifetimes, let_underscore_drop)]

use relaybus::memory::{MemoryStore, MemoryTransaction};
use relaybus::store::HandleOf as _;
use relaybus::{RelayBus, Result, transaction};

/// Orders.
#[derive(Debug)]
struct Orders {
    bus: RelayBus<MemoryStore>,
}

impl Orders {
    /// Places one.
    ///
    /// # Errors
    /// When it is late.
    #[transaction(isolation = "serializable", attempts = 500_000)]
    async fn place(&self, tx: &mut MemoryTransaction, name: &str) -> Result<usize> {
        std::future::ready(()).await;
        Ok(name.len() + format!("{:?}{:?}", self.bus, tx.handle()).len())
    }
}

#[test]
fn called() {
    let orders = Orders { bus: RelayBus::builder(MemoryStore::new()).build().unwrap() };
    drop(orders.place(&orders.bus, "a"));
}
