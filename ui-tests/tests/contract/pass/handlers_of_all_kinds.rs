//! Functions, methods, catalogs' handlers and consumers of whole catalogs, in modules around, fulfil one contract.

use relaybus::memory::MemoryTransaction;
use relaybus::{
    Envelope, Event, HandlerContext, HandlerResult, MemoryStore, Module, RelayBus, catalog, consumer, consumers,
};
use serde::{Deserialize, Serialize};

macro_rules! events {
    ($($name:ident $event_type:literal),+) => {
        $(
            #[derive(Event, Serialize, Deserialize)]
            #[event($event_type)]
            pub(super) struct $name {}
        )+
    };
}
events!(Placed "order.placed.v1", Paid "order.paid.v1", Shipped "order.shipped.v1", Registered "user.registered.v1");

#[catalog]
enum Orders {
    Placed(Placed),
    Paid(Paid),
    Shipped(Shipped),
}

#[catalog]
enum Users {
    Registered(Registered),
}

mod functions {
    #[relaybus::consumer(super::Placed)]
    pub(super) async fn place(_: super::Placed) {}
}

struct Billing;

#[consumers]
impl Billing {
    #[consumer(Paid, transactional)]
    async fn pay(&self, _: Paid, _: &mut MemoryTransaction) {}

    #[consumer(Paid)]
    async fn thank(&self, _: Paid) {}
}

struct Welcome;

#[consumers(Users)]
impl UsersHandlers for Welcome {
    async fn on_registered(&self, _: &Envelope<Registered>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

#[consumer(Orders)]
async fn project(event: Orders) {
    match event {
        Orders::Placed(_) | Orders::Paid(_) | Orders::Shipped(_) => {}
    }
}

relaybus::module! {
    name: sales,
    consumes: [Orders::{Placed, Paid}, self::Users],
    handlers: [functions::place, Billing, Welcome],
}

relaybus::module! {
    handlers: [project],
    consumes: [Orders],
    name: pub(crate) reports,
}

relaybus::module! { name: silent }

#[test]
fn their_handlers_are_registered() {
    let builder = RelayBus::builder(MemoryStore::new()).provide(Billing).provide(Welcome);
    let bus = builder.module::<sales>().module::<reports>().module::<silent>().build().unwrap();
    assert_eq!(bus.handlers().len(), 4 + 3);
    fn is_module<M: Module>() {}
    is_module::<sales>();
    let kinds: [Orders; 3] = [Placed {}.into(), Paid {}.into(), Shipped {}.into()];
    assert!(kinds.iter().all(|event| !matches!(event, Orders::Paid(_)) || kinds.len() == 3));
    assert!(matches!(Registered {}.into(), Users::Registered(_)));
}
