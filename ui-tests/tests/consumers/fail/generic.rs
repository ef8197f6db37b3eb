//! A type with parameters.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

struct Forwarding<'a, T>(&'a T);

#[consumers]
impl<'a, T> Forwarding<'a, T> {
    #[consumer(OrderPlaced)]
    async fn on_placed(&self, _: OrderPlaced) {}
}

#[consumers]
impl Shipping {
    #[consumer(OrderPlaced)]
    async fn on_placed<T>(&self, _: T) {}
}

fn main() {}
