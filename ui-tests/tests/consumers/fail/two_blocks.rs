//! Two blocks of one type.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[consumers]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn on_placed(&self, _: OrderPlaced) {}
}

#[consumers]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn again(&self, _: OrderPlaced) {}
}

fn main() {}
