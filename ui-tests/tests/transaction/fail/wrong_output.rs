//! No result, or one without a name.

use relaybus::memory::MemoryTransaction;
use relaybus::transaction;

#[transaction]
async fn nothing(_: &mut MemoryTransaction) {}

#[transaction]
async fn unnamed(_: &mut MemoryTransaction) -> impl Sized {}

fn main() {}
