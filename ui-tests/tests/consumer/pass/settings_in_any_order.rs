//! The attribute's arguments in any order, and each of its values.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(
    crate = relaybus,
    companion = First,
    order = "strict",
    concurrency = 1_000,
    timeout = false,
    retry(factor = 1, max_delay = "1d", attempts = 1, initial_delay = "1ms"),
    OrderPlaced,
    id = "a"
)]
async fn first(_: OrderPlaced) {}

#[consumer(id = "it's \"b\" é", OrderPlaced, transactional, retry(attempts = "infinite",), order = "replay")]
async fn second(_: OrderPlaced) {}

#[consumer(OrderPlaced, retry(attempts = 0x10, factor = 1.5e3), timeout = "7d", concurrency = 4usize)]
async fn third(_: OrderPlaced) {}

#[consumer(OrderPlaced)]
async fn fourth(_: OrderPlaced) {}
