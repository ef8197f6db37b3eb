//! A transactional consumer of another store.

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

#[consumer(OrderPlaced, transactional)]
async fn record(_: OrderPlaced, _: &mut LiteConnection) {}

fn list() -> HandlerList<Memory> {
    handlers![ship, record]
}

fn main() {}
