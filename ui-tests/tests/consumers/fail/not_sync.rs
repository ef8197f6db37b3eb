//! An instance that its runs cannot share: reported for the instance and for its future.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

struct Counting(std::cell::Cell<u32>);

#[consumers]
impl Counting {
    #[consumer(OrderPlaced)]
    async fn on_placed(&self, _: OrderPlaced) {}
}

fn main() {}
