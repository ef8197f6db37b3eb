//! A call with something that is neither a bus nor a transaction.

use std::sync::Arc;

use relaybus::memory::MemoryTransaction;
use relaybus::{MemoryStore, RelayBus, Result, transaction};

#[transaction]
async fn place(_: &mut MemoryTransaction) -> Result {
    Ok(())
}

async fn run(bus: &Arc<RelayBus<MemoryStore>>) -> Result {
    place(bus).await
}

fn main() {}
