//! The attribute on something else.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[consumers]
async fn ship(_: OrderPlaced) {}

#[consumers]
struct Billing;

fn main() {}
