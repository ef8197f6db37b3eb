//! Each argument given twice.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(
    OrderPlaced,
    id = "a", id = "b",
    retry(attempts = 1, attempts = 2, factor = 2.0, factor = 3.0), retry(attempts = 3),
    timeout = "1s", timeout = false,
    concurrency = 1, concurrency = 2,
    transactional, transactional,
    order = "strict", order = "replay",
    companion = Ship, companion = Ship,
    crate = relaybus, crate = relaybus,
)]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, retry(initial_delay = "1s", initial_delay = "2s", max_delay = "1m", max_delay = "2m"))]
async fn record(_: OrderPlaced) {}

fn main() {}
