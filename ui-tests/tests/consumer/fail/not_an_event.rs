//! A type that is no event.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use relaybus::Envelope;

struct NotAnEvent;

#[consumer(NotAnEvent)]
async fn ship(_: Envelope<NotAnEvent>) {}

#[consumer(String)]
async fn record(_: String) {}

fn main() {}
