//! An envelope of another event than the attribute names.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::Envelope;

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
struct OrderShipped {}

#[consumer(OrderPlaced)]
async fn ship(_: Envelope<OrderShipped>) {}

#[consumer(OrderPlaced)]
async fn record(_: &Envelope<OrderShipped>) {}

#[consumer(OrderPlaced)]
async fn bill(_: OrderShipped) {}

fn main() {}
