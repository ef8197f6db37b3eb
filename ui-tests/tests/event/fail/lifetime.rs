//! An event that borrows.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = order_id)]
struct OrderPlaced<'a, 'b> {
    order_id: &'a str,
    note: &'b str,
}

fn main() {}
