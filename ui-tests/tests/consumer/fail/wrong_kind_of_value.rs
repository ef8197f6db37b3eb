//! Values of a kind that the argument does not take.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(
    OrderPlaced,
    id = 5,
    retry = 5,
    timeout = 30,
    concurrency = "4",
    transactional = true,
    order = strict,
    companion = "Ship",
    crate = "relaybus",
)]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderPlaced, retry(attempts = "many", initial_delay = 2, factor = "2", max_delay = true), timeout = true)]
async fn record(_: OrderPlaced) {}

#[consumer(OrderPlaced, id("record"), transactional(true), companion = ship::Ship)]
async fn bill(_: OrderPlaced) {}

fn main() {}
