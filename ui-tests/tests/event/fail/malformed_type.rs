//! Texts that are no event types.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order placed")]
struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("")]
struct OrderShipped {}

#[derive(Event, Serialize, Deserialize)]
#[event("bestellung.geprüft.v1")]
struct OrderChecked {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed\n")]
struct OrderCancelled {}

fn main() {}
