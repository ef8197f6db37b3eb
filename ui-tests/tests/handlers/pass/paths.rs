//! Functions and types by every kind of path, and lists in every position.

use relaybus::memory::{Memory, MemoryTransaction};
use relaybus::registry::HandlerList;
use relaybus::store::{AnyFamily, Family, Lends};
use relaybus::{AnyTransaction, Event, consumer, consumers, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, transactional)]
async fn record(_: OrderPlaced, _: &mut MemoryTransaction) {}

/// As a library writes it: for whatever store the application has.
#[consumer(OrderPlaced, transactional)]
async fn of_any_store(_: &mut AnyTransaction) {}

mod billing {
    #[relaybus::consumer(super::OrderPlaced)]
    pub(super) async fn bill(_: super::OrderPlaced) {}
}

struct Archive<T>(T);

#[consumers]
impl Archive<u8> {
    #[consumer(OrderPlaced)]
    async fn keep(&self, _: OrderPlaced) {}

    fn list() -> HandlerList<Memory> {
        handlers![Self, record]
    }
}

type Bytes = Archive<u8>;

fn count<F: Family>(list: HandlerList<F>) -> usize {
    list.entries().len()
}

fn generic<F>() -> HandlerList<F>
where
    F: Family,
    F: Lends<MemoryTransaction>,
{
    handlers![record, crate::handlers_paths::billing::bill]
}

#[test]
fn counted() {
    assert_eq!(count::<Memory>(handlers![record, self::billing::bill, Archive<u8>,]), 3);
    assert_eq!(count::<Memory>(handlers![Bytes]), 1);
    assert_eq!(count::<Memory>(handlers!()), 0);
    assert_eq!(count::<Memory>(handlers![of_any_store]), 1);
    assert_eq!(count::<AnyFamily>(handlers![of_any_store, billing::bill]), 2);
    let list = handlers! { billing::bill };
    assert_eq!(count::<Memory>(list), 1);
    assert_eq!((count(Archive::list()), count(generic::<Memory>())), (2, 2));
}
