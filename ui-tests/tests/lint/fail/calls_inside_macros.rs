//! Calls in the arguments of macros, in closures and as values.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction]
async fn place(_: &mut MemoryTransaction) -> Result<usize> {
    println!("{}", reqwest::get("https://a.example").await);
    let later = || async { reqwest::get("https://b.example").await };
    let all = ["https://c.example"].map(reqwest::get);
    drop(all);
    Ok(later().await)
}

fn main() {}
