//! Functions that a macro by example writes.

#![allow(dead_code, reason = "that it compiles is what it is for")]

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

macro_rules! place {
    ($name:ident, $handle:ty, $level:literal, $attempts:expr, $value:expr) => {
        #[transaction(isolation = $level, attempts = $attempts)]
        async fn $name(tx: &mut $handle, order: u64) -> Result<u64> {
            let _ = tx;
            Ok($value + order)
        }
    };
}
place!(one, MemoryTransaction, "serializable", 5, 1);
place!(r#type, MemoryTransaction, "repeatable read", 2, 1 + 1);
