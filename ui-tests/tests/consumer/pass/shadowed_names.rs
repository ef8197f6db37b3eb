//! Every name of the prelude and of relaybus taken by something else.

#![allow(unused_macros, reason = "that they are in scope is the case")]

#[allow(unused_imports, reason = "as above")]
use crate::names::*;

macro_rules! concat {
    ($($tokens:tt)*) => {
        compile_error!("the user's macro")
    };
}
macro_rules! module_path {
    () => {
        compile_error!("the user's macro")
    };
}

mod event {
    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
    #[event("order.placed.v1")]
    pub(super) struct OrderPlaced {}
}
use event::OrderPlaced;

#[::relaybus::consumer(
    OrderPlaced,
    transactional,
    retry(attempts = 5, initial_delay = "2s", factor = 2.0, max_delay = "5m"),
    timeout = "30s",
    concurrency = 4
)]
async fn record(
    event: &::relaybus::Envelope<OrderPlaced>,
    tx: &mut ::relaybus::memory::MemoryTransaction,
) -> ::std::result::Result<(), ::std::fmt::Error> {
    let _ = (event, tx);
    ::std::result::Result::Ok(())
}
