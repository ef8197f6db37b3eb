//! A reference that would outlive the delivery.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::{Envelope, HandlerContext};

#[consumer(OrderPlaced)]
async fn ship(_: &'static Envelope<OrderPlaced>, _: &'static HandlerContext) {}

fn main() {}
