//! Types that are not results.

use relaybus::memory::MemoryTransaction;
use relaybus::transaction;

#[transaction]
async fn place(_: &mut MemoryTransaction) -> u32 {
    5
}

#[transaction]
async fn place_many(_: &mut MemoryTransaction) -> Option<()> {
    None
}

fn main() {}
