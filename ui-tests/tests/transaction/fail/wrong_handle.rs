//! A first parameter that is not `&mut` of a named type.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction]
async fn shared(_: &MemoryTransaction) -> Result {
    Ok(())
}

#[transaction]
async fn owned(_: MemoryTransaction) -> Result {
    Ok(())
}

#[transaction]
async fn lifetime<'t>(_: &'t mut MemoryTransaction) -> Result {
    Ok(())
}

#[transaction]
async fn unnamed(_: &mut impl Send) -> Result {
    Ok(())
}

fn main() {}
