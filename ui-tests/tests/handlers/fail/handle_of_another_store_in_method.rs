//! A type with a transactional consumer of another store.

use relaybus::memory::Memory;
use relaybus::registry::HandlerList;
use relaybus::{Event, consumer, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced) {}

use relaybus::store::{Family, HandleOf, Lends};

enum Lite {}
impl Family for Lite {
    type Handle<'c> = &'c mut LiteConnection;
    const NAME: &'static str = "lite";
}
struct LiteConnection;
impl Lends<LiteConnection> for Lite {}
impl HandleOf<Lite> for LiteConnection {
    fn handle(&mut self) -> &mut LiteConnection {
        self
    }
}

struct Billing;

#[relaybus::consumers]
impl Billing {
    #[consumer(OrderPlaced, transactional)]
    async fn record(&self, _: OrderPlaced, _: &mut LiteConnection) {}
}

fn list() -> HandlerList<Memory> {
    handlers![ship, Billing]
}

fn main() {}
