//! Methods whose attribute names no event.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[consumers]
impl Shipping {
    #[consumer]
    async fn on_placed(&self, _: OrderPlaced) {}

    #[consumer(id = "shipping.on_shipped")]
    async fn on_shipped(&self, _: OrderPlaced) {}
}

fn main() {}
