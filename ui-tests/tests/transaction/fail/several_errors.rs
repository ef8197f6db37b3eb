//! Each mistake of one input is reported, and nothing else.

use relaybus::memory::MemoryTransaction;
use relaybus::transaction;

#[transaction(isolation = "strict", retries = 2)]
fn place(order: u64, _: &mut MemoryTransaction) {
    let _ = std::process::Command::new("ls").arg(order.to_string());
}

fn main() {}
