//! `impl Trait` in an argument and in the result.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced, _: impl Fn(u32) -> u32) {}

#[consumer(OrderPlaced)]
async fn record(_: OrderPlaced) -> Result<(), impl std::error::Error> {
    Err(std::fmt::Error)
}

fn main() {}
