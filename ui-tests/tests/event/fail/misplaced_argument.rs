//! Arguments of other macros.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", id = "orders.placed", retry(attempts = 5), transactional, attempts = 3)]
struct OrderPlaced {}

fn main() {}
