//! Calls before and after transactions, and in consumers that have none.

#![allow(dead_code, reason = "that it compiles is what it is for")]

use relaybus::memory::MemoryTransaction;
use relaybus::{Event, MemoryStore, RelayBus, Result, State, consumer, lint_transactions, transaction};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
async fn notify(_: OrderPlaced, http: State<reqwest::Client>) {
    http.get("https://a.example").await;
}

#[transaction]
async fn save(tx: &mut MemoryTransaction, bus: &RelayBus<MemoryStore>, found: usize) -> Result<usize> {
    bus.publish(tx, OrderPlaced {}).await?;
    Ok(found)
}

#[lint_transactions]
async fn place(bus: &RelayBus<MemoryStore>) -> Result<usize> {
    let found = reqwest::get("https://a.example").await;
    save(bus, bus, found).await?;
    bus.transaction(async |tx| save(tx, bus, found).await).await?;
    let tx = bus.begin().await?;
    tx.rollback().await?;
    Ok(reqwest::get("https://a.example").await)
}
