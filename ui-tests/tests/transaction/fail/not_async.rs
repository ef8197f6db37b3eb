//! A function that is not async.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction]
fn place(tx: &mut MemoryTransaction) -> Result {
    let _ = tx;
    Ok(())
}

fn main() {}
