//! What a rerun consumes is cloned, and this cannot be.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

struct Order;

#[transaction(isolation = "serializable")]
async fn place(_: &mut MemoryTransaction, order: Order) -> Result {
    drop(order);
    Ok(())
}

fn main() {}
