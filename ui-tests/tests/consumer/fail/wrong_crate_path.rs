//! A path at which relaybus is not.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, crate = framework::bus)]
async fn ship(_: OrderPlaced) {}

fn main() {}
