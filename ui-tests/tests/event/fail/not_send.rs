//! A payload that cannot go to another thread.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {
    #[serde(skip)]
    cursor: Cursor,
}

struct Cursor(*const u8);

impl Default for Cursor {
    fn default() -> Self {
        Self(std::ptr::null())
    }
}

fn main() {}
