//! The context without `&`.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::HandlerContext;

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced, _: HandlerContext) {}

fn main() {}
