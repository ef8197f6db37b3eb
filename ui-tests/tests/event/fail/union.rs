//! A union.

use relaybus::Event;

#[derive(Event)]
#[event("order.placed.v1")]
union OrderPlaced {
    a: u32,
    b: f32,
}

fn main() {}
