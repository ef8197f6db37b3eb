//! Methods beside everything else that an impl block may have.

use relaybus::memory::{Memory, MemoryTransaction};
use relaybus::registry::{Consumers, HandlerList};
use relaybus::{Envelope, Event, HandlerContext, State, consumers, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping<T> {
    label: T,
}

#[consumers]
#[allow(dead_code, reason = "what else a block may have")]
impl Shipping<String> {
    const LIMIT: usize = 3;

    fn helper<T: Into<String>>(&self, text: T) -> bool {
        text.into() == self.label
    }

    /// With documentation.
    #[consumer(OrderPlaced, id = "methods.a", retry(attempts = 2))]
    async fn a(&self, _: OrderPlaced) {
        assert!(self.label.len() < Self::LIMIT && self.helper("x"));
    }

    #[relaybus::consumer(OrderPlaced, transactional)]
    async fn b<'a>(&'a self, event: &'a Envelope<OrderPlaced>, tx: &'a mut MemoryTransaction, own: State<Self>) {
        let _ = (event, tx, own);
    }

    #[consumer(OrderPlaced, transactional, concurrency = 1)]
    async fn c(&self, _: &HandlerContext, _: &mut MemoryTransaction) -> Result<(), std::fmt::Error> {
        Ok(())
    }
}

impl Shipping<u8> {
    #[allow(dead_code, reason = "a second block without consumers")]
    async fn a(&self) {}
}

#[test]
fn listed() {
    let list: HandlerList<Memory> = handlers![Shipping<String>];
    assert_eq!(list.entries().len(), <Shipping<String> as Consumers>::ENTRIES.len());
    assert!(list.entries()[1].id.ends_with("methods::Shipping<String>::b"), "{list:?}");
}
