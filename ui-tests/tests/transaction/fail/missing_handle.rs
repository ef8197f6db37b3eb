//! No parameter, or another one first.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction]
async fn nothing() -> Result {
    Ok(())
}

#[transaction]
async fn second(order: u64, tx: &mut MemoryTransaction) -> Result {
    let _ = (order, tx);
    Ok(())
}

struct Orders;

impl Orders {
    #[transaction]
    async fn place(&self) -> Result {
        Ok(())
    }
}

fn main() {}
