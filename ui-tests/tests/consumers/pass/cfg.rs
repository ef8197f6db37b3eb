//! Methods and whole blocks that are configured away.

use relaybus::registry::Consumers;
use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[consumers]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn here(&self, #[cfg(not(test))] _: Missing, _: OrderPlaced) {}

    #[cfg(not(test))]
    #[consumer(Missing, transactional)]
    async fn away(&self, _: &mut Missing) {}

    #[consumer(OrderPlaced)]
    #[cfg(test)]
    async fn here_too(&self, _: OrderPlaced) {}
}

#[consumers]
#[cfg(not(test))]
impl Missing {
    #[consumer(OrderPlaced)]
    async fn away(&self, _: OrderPlaced) {}
}

#[test]
fn listed() {
    assert_eq!(<Shipping as Consumers>::ENTRIES.len(), 2);
}
