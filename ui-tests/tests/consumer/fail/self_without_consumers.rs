//! A method, in a block without `#[consumers]`.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

impl Shipping {
    #[consumer(OrderPlaced, id = "shipping.ship")]
    async fn ship(&self, _: OrderPlaced) {}
}

fn main() {}
