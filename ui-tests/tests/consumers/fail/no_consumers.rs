//! A block without a consumer.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[consumers]
impl Shipping {
    async fn on_placed(&self, _: OrderPlaced) {}
}

fn main() {}
