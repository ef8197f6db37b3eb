//! A handle that was given away, and is needed again.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction]
async fn place(_: &mut MemoryTransaction) -> Result {
    Ok(())
}

#[transaction]
async fn place_two(tx: &mut MemoryTransaction) -> Result {
    place(tx).await?;
    place(tx).await
}

fn main() {}
