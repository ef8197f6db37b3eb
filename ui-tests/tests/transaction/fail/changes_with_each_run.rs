//! A transaction that may run more than once and changes something else.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

struct Orders;

impl Orders {
    #[transaction(isolation = "serializable")]
    async fn place(&mut self, _: &mut MemoryTransaction, count: &mut u32) -> Result {
        *count += 1;
        Ok(())
    }
}

fn main() {}
