//! A type that is no module, and a module of another store.

use relaybus::{Event, MemoryStore, RelayBusBuilder, catalog, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[catalog]
pub enum OrderEvents {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
}

struct Shipping;

struct Ledger;

#[consumers]
impl Ledger {
    #[consumer(OrderPlaced, transactional)]
    async fn record(&self, _: OrderPlaced, _: &mut LiteConnection) {}
}

relaybus::module! {
    name: ledger,
    consumes: [OrderEvents::{OrderPlaced}],
    handlers: [Ledger],
}

fn build(builder: RelayBusBuilder<MemoryStore>) {
    let _ = builder.module::<Shipping>();
}

fn build_with_module(builder: RelayBusBuilder<MemoryStore>) {
    let _ = builder.module::<ledger>();
}

enum Lite {}
impl relaybus::store::Family for Lite {
    type Handle<'c> = &'c mut LiteConnection;
    const NAME: &'static str = "lite";
}
struct LiteConnection;
impl relaybus::store::HandleOf<Lite> for LiteConnection {
    fn handle(&mut self) -> &mut LiteConnection {
        self
    }
}

fn main() {}
