//! Arguments that are misspelt, or of other macros.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction(isolaton = "serializable", retries = 5, timeout = "5s")]
async fn place(_: &mut MemoryTransaction) -> Result {
    Ok(())
}

fn main() {}
