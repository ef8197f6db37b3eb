//! Arguments that are repeated, lack a value, or have one of another kind.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction(isolation = "snapshot", attempts = 0)]
async fn kinds(_: &mut MemoryTransaction) -> Result {
    Ok(())
}

#[transaction(isolation, attempts = "many", isolation = "serializable", isolation = "serializable")]
async fn values(_: &mut MemoryTransaction) -> Result {
    Ok(())
}

fn main() {}
