//! Texts that are no durations.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, timeout = "soon", retry(initial_delay = "1.5s", max_delay = "5 minutes"))]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, timeout = "0s", retry(initial_delay = "0ms", max_delay = "99999999999999999999d"))]
async fn record(_: OrderPlaced) {}

fn main() {}
