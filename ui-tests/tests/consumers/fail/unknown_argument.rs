//! Arguments that the attribute does not take.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[consumers(id = "shipping", prefix = "shipping", OrderPlaced)]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn on_placed(&self, _: OrderPlaced) {}
}

fn main() {}
