//! What an argument is, its type decides, by whatever name it goes.

use relaybus::memory::MemoryTransaction as Transaction;
use relaybus::registry::Entry;
use relaybus::{Envelope as Message, HandlerContext as Delivery, State as Shared, consumer as handles};
use serde::{Deserialize, Serialize};

#[derive(relaybus::Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

type Placed = OrderPlaced;
type PlacedMessage = Message<OrderPlaced>;
type Tx<'a> = &'a mut Transaction;
type Outcome<T = (), E = std::io::Error> = Result<T, E>;
type Names = Shared<Vec<String>>;

#[handles(Placed, transactional, id = "aliases.handle")]
async fn handle(event: PlacedMessage, tx: Tx<'_>, names: Names, delivery: &Delivery) -> Outcome {
    let _ = (event, tx, names, delivery);
    Ok(())
}

#[relaybus::consumer(self::Placed, id = "aliases.by_path")]
async fn by_path(_: relaybus::Envelope<self::OrderPlaced>, _: &relaybus::HandlerContext) {}

#[test]
fn registered() {
    for id in ["aliases.handle", "aliases.by_path"] {
        let entry = relaybus::__private::inventory::iter::<Entry>().find(|entry| entry.id == id).unwrap();
        assert_eq!(entry.event, "order.placed.v1");
    }
}
