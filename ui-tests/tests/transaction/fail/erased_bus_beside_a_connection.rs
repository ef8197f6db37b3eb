//! A bus without the type of its store beside the connection of one.

use relaybus::store::{Family, HandleOf};
use relaybus::{Event, RelayBus, Result, State, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

enum Lite {}
impl Family for Lite {
    type Handle<'c> = &'c mut LiteConnection;
    const NAME: &'static str = "lite";
}
struct LiteConnection;
impl HandleOf<Lite> for LiteConnection {
    fn handle(&mut self) -> &mut LiteConnection {
        self
    }
}

#[consumer(OrderPlaced, transactional)]
async fn answer(_: &OrderPlaced, tx: &mut LiteConnection, bus: State<RelayBus>) -> Result {
    bus.publish(tx, OrderPlaced {}).await?;
    Ok(())
}

fn main() {}
