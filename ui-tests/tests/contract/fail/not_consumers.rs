//! Handlers that are none.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

async fn plain(_: OrderPlaced) {}

struct Shipping;

relaybus::module! {
    name: shipping,
    consumes: [],
    handlers: [plain, Shipping, shipping::missing],
}

fn main() {}
