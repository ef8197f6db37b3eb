//! A path of relaybus that leads nowhere.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction(crate = my_framework::bus)]
async fn place(_: &mut MemoryTransaction) -> Result {
    Ok(())
}

fn main() {}
