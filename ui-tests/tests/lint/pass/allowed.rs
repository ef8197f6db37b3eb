//! Calls that may stay, with their reasons.

#![allow(dead_code, reason = "that it compiles is what it is for")]

use relaybus::memory::MemoryTransaction;
use relaybus::{
    Event, MemoryStore, RelayBus, Result, State, allow_external_call, consumer, lint_transactions, transaction,
};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[transaction]
async fn place(_: &mut MemoryTransaction, http: &reqwest::Client) -> Result<usize> {
    #[allow_external_call(reason = "a daemon of this machine")]
    let found = match http.get("http://127.0.0.1").await {
        0 => reqwest::get("http://127.0.0.1").await,
        found => found,
    };
    #[relaybus::allow_external_call(reason = "a daemon of this machine")]
    Ok(found + http.get("http://127.0.0.1").await)
}

#[allow_external_call(reason = "a daemon of this machine")]
#[transaction]
async fn above(_: &mut MemoryTransaction) -> Result<usize> {
    Ok(reqwest::get("http://127.0.0.1").await)
}

#[consumer(OrderPlaced, transactional)]
#[allow_external_call(reason = "a daemon of this machine")]
async fn below(_: OrderPlaced, http: State<reqwest::Client>) {
    http.get("http://127.0.0.1").await;
}

#[lint_transactions]
async fn closure(bus: &RelayBus<MemoryStore>) -> Result<usize> {
    bus.transaction(async |_| {
        #[allow_external_call(reason = "a daemon of this machine")]
        let found = reqwest::get("http://127.0.0.1").await;
        Ok(found)
    })
    .await
}
