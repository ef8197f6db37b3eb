//! Arguments that belong on the block or on a function.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[consumers]
impl Shipping {
    #[consumer(OrderPlaced, companion = OnPlaced, crate = relaybus)]
    async fn on_placed(&self, _: OrderPlaced) {}
}

fn main() {}
