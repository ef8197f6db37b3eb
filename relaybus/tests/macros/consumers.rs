//! `#[consumers]` on impl blocks, and `handlers![]`.

use std::any::TypeId;

use relaybus::memory::{Memory, MemoryTransaction};
use relaybus::registry::{Consumers, Entry, HandlerList};
use relaybus::store::{Family, HandleOf, Lends};
use relaybus::{Envelope, Event, HandlerContext, Needs, State, consumer, consumers, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("parcel.packed.v1")]
struct ParcelPacked {
    id: u64,
}

#[derive(Event, Serialize, Deserialize)]
#[event("parcel.lost.v1")]
struct ParcelLost {
    id: u64,
}

/// A second database, which is not the in-memory store's.
enum Other {}
impl Family for Other {
    type Handle<'c> = &'c mut OtherTransaction;
    const NAME: &'static str = "other";
}
struct OtherTransaction;
impl Lends<OtherTransaction> for Other {}
impl HandleOf<Other> for OtherTransaction {
    fn handle(&mut self) -> &mut OtherTransaction {
        self
    }
}

struct Shipping<T> {
    carrier: T,
}

struct Carrier;

#[consumers]
impl Shipping<Carrier> {
    const LABEL: &'static str = "label";

    #[consumer(ParcelPacked, transactional, id = "shipping.on_packed")]
    async fn on_packed<'a>(&'a self, event: &'a Envelope<ParcelPacked>, tx: &'a mut MemoryTransaction) {
        let _ = (self.helper(), event.payload.id, tx, Self::LABEL);
    }

    #[consumer(ParcelLost)]
    pub(crate) async fn on_lost(&self, event: ParcelLost, own: State<Self>) -> relaybus::Result {
        let _ = (event.id, own);
        Ok(())
    }

    #[consumer(ParcelLost)]
    #[cfg(any())]
    async fn configured_away(&self, event: ParcelLost) {}

    fn helper(&self) -> &Carrier {
        &self.carrier
    }
}

mod billing {
    use super::{HandlerContext, OtherTransaction, ParcelLost, consumer};

    #[consumer(ParcelLost, id = "billing.refund", transactional)]
    pub(super) async fn refund(_: &HandlerContext, tx: &mut OtherTransaction, event: ParcelLost) {
        let _ = (tx, event);
    }
}

#[consumer(ParcelLost, id = "note")]
async fn note(event: ParcelLost) {
    let _ = event;
}

fn ids(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.id).collect()
}

#[test]
fn a_type_has_its_methods_as_handlers() {
    let entries = <Shipping<Carrier> as Consumers>::ENTRIES;
    assert_eq!(ids(entries), ["shipping.on_packed", "macros::consumers::Shipping<Carrier>::on_lost"]);
    assert_eq!(entries[0].event, "parcel.packed.v1");
    assert!(entries[0].transactional && !entries[1].transactional);

    let [Needs::Instance(this), Needs::Event, Needs::Handle(handle)] = entries[0].needs else {
        panic!("unexpected needs {:?}", entries[0].needs)
    };
    assert_eq!(this.id(), TypeId::of::<Shipping<Carrier>>());
    assert_eq!(handle.id(), TypeId::of::<MemoryTransaction>());
}

#[test]
fn methods_are_registered_too() {
    let registered = |id| relaybus::__private::inventory::iter::<Entry>().filter(|entry| entry.id == id).count();
    assert_eq!(registered("shipping.on_packed"), 1);
    assert_eq!(registered("macros::consumers::Shipping<Carrier>::on_lost"), 1);
}

#[test]
fn a_list_takes_functions_and_types_that_fit_the_store() {
    fn check<F: Family>(list: HandlerList<F>) -> Vec<Entry> {
        list.entries().to_vec()
    }
    type Alias = Shipping<Carrier>;
    assert_eq!(ids(&check::<Other>(handlers![note, billing::refund])), ["note", "billing.refund"]);
    assert_eq!(check::<Memory>(handlers![note, Shipping<Carrier>]).len(), 3);
    assert_eq!(check::<Memory>(handlers![self::note, Alias,]).len(), 3);
    assert!(check::<Memory>(handlers![]).is_empty());
}
