//! A function that is not async.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced)]
fn record(_: OrderPlaced) -> impl Future<Output = ()> {
    async {}
}

fn main() {}
