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

struct Shipping;

#[::relaybus::consumers]
impl Shipping {
    #[consumer(OrderPlaced, transactional, retry(attempts = 2))]
    async fn str(&self, event: OrderPlaced, tx: &mut ::relaybus::memory::MemoryTransaction) {
        let _ = (event, tx);
    }

    #[consumer(OrderPlaced)]
    async fn __relaybus(&self, event: &OrderPlaced) {
        let _ = event;
    }
}
