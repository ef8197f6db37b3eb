//! A transaction of another type.

use relaybus::memory::MemoryTransaction;
use relaybus::{AnyTransaction, Result, transaction};

#[transaction]
async fn place(_: &mut AnyTransaction) -> Result {
    Ok(())
}

async fn join(tx: &mut MemoryTransaction) -> Result {
    place(tx).await
}

fn main() {}
