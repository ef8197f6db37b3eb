//! An error that cannot be made from an error of relaybus.

use relaybus::memory::MemoryTransaction;
use relaybus::transaction;

struct Late;

#[transaction]
async fn place(_: &mut MemoryTransaction) -> Result<(), Late> {
    Ok(())
}

fn main() {}
