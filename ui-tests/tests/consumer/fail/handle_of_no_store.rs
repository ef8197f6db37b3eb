//! `&mut` of something that no store lends.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, transactional)]
async fn record(_: OrderPlaced, _: &mut Mailer) {}

struct Mailer;

fn main() {}
