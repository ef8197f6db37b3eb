//! A future that cannot go to another thread.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

use std::rc::Rc;

#[consumer(OrderPlaced)]
async fn ship(event: OrderPlaced) {
    let shared = Rc::new(event);
    std::future::ready(()).await;
    drop(shared);
}

fn main() {}
