//! The attribute twice.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction]
#[transaction(isolation = "serializable")]
async fn place(_: &mut MemoryTransaction) -> Result {
    Ok(())
}

fn main() {}
