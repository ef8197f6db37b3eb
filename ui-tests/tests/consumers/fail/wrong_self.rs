//! Methods with another `self`, or without one.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

use std::sync::Arc;

#[consumers]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn a(&mut self, _: OrderPlaced) {}

    #[consumer(OrderPlaced)]
    async fn b(self, _: OrderPlaced) {}

    #[consumer(OrderPlaced)]
    async fn c(self: Arc<Self>, _: OrderPlaced) {}

    #[consumer(OrderPlaced)]
    async fn d(_: OrderPlaced) {}
}

fn main() {}
