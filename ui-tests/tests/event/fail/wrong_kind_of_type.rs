//! The type as something else than a text.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(OrderPlaced)]
struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event(42)]
struct OrderShipped {}

fn main() {}
