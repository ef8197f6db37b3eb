//! Methods that are not async.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[consumers]
impl Shipping {
    #[consumer(OrderPlaced)]
    fn on_placed(&self, _: OrderPlaced) {}
}

fn main() {}
