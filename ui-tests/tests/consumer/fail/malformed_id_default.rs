//! A default id, the path, that has a `#`.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

mod r#type {
    use relaybus::consumer;

    #[consumer(super::OrderPlaced)]
    async fn ship(_: super::OrderPlaced) {}
}

fn main() {}
