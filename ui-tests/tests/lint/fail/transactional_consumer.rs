//! Consumers that run in a transaction: a function and a method.

use relaybus::{Event, State, consumer, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced, transactional)]
async fn ship(_: OrderPlaced, http: State<reqwest::Client>) {
    http.get("https://carrier.example").await;
}

struct Billing {
    http: reqwest::Client,
}

#[consumers]
impl Billing {
    #[consumer(OrderPlaced, transactional)]
    async fn bill(&self, _: OrderPlaced) {
        self.http.get("https://bank.example").await;
    }
}

fn main() {}
