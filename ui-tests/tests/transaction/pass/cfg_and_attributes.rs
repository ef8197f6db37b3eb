//! Other attributes on the function, its parameters and its statements.

#![allow(dead_code, reason = "that it compiles is what it is for")]

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[cfg(any())]
#[transaction]
async fn gone(tx: &mut Missing) -> Result {}

#[transaction]
#[must_use]
#[allow(unused_variables, reason = "it is there for the attribute")]
async fn place(tx: &mut MemoryTransaction, #[cfg(any())] gone: Missing, #[cfg(not(any()))] order: u64) -> Result<u64> {
    #[cfg(any())]
    missing();
    #[allow(clippy::identity_op, reason = "it is there for the attribute")]
    let next = order + 0;
    Ok(next)
}
