//! Results that a consumer cannot have.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced) -> u32 {
    5
}

#[consumer(OrderPlaced)]
async fn record(_: OrderPlaced) -> Result<u32, std::fmt::Error> {
    Ok(5)
}

#[consumer(OrderPlaced)]
async fn bill(_: OrderPlaced) -> Result<(), NotAnError> {
    Ok(())
}

struct NotAnError;

fn main() {}
