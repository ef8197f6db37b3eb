//! Attempts where nothing is rerun.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction(attempts = 5)]
async fn none(_: &mut MemoryTransaction) -> Result {
    Ok(())
}

#[transaction(isolation = "read committed", attempts = 5)]
async fn weak(_: &mut MemoryTransaction) -> Result {
    Ok(())
}

fn main() {}
