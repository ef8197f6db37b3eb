//! Companions that are no names, or a name that is taken.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;
struct Billing;

#[consumers(companion = "Notes")]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn a(&self, _: OrderPlaced) {}
}
#[consumers(companion)]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn b(&self, _: OrderPlaced) {}
}
#[consumers(companion = Billing)]
impl Billing {
    #[consumer(OrderPlaced)]
    async fn c(&self, _: OrderPlaced) {}
}

fn main() {}
