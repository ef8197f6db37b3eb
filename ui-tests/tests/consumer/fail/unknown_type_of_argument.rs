//! Arguments that a delivery cannot give.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use std::collections::HashMap;

#[consumer(OrderPlaced)]
async fn ship(_: OrderPlaced, _: HashMap<String, u32>, _: Mailer) {}

struct Mailer;

fn main() {}
