//! What functions may not take, methods may not either.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

use relaybus::Envelope;
use relaybus::memory::MemoryTransaction;

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
struct OrderShipped {}

#[consumers]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn on_placed(&self, _: Envelope<OrderShipped>, _: Vec<u8>) {}

    #[consumer(OrderPlaced)]
    async fn again(&self, _: OrderPlaced, _: &mut MemoryTransaction) {}

    #[consumer(OrderPlaced)]
    async fn answer(&self, _: OrderPlaced) -> Self {
        Self
    }
}

fn main() {}
