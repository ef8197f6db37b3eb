//! `crate` given twice, without its value, and as a text.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[consumers(crate = relaybus, crate = relaybus)]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn on_placed(&self, _: OrderPlaced) {}
}

struct Billing;

#[consumers(crate)]
impl Billing {
    #[consumer(OrderPlaced)]
    async fn on_placed(&self, _: OrderPlaced) {}
}

struct Archive;

#[consumers(crate = "relaybus")]
impl Archive {
    #[consumer(OrderPlaced)]
    async fn on_placed(&self, _: OrderPlaced) {}
}

fn main() {}
