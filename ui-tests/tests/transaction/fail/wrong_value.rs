//! A body whose value is not the function's.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction]
async fn place(_: &mut MemoryTransaction, name: &str) -> Result<u32> {
    Ok(name)
}

fn main() {}
