//! What comes after an allowed statement is not allowed.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction]
async fn place(_: &mut MemoryTransaction, twice: bool) -> Result {
    #[allow_external_call(reason = "a daemon of this machine")]
    if twice {
        reqwest::get("http://127.0.0.1").await;
    } else {
        reqwest::get("http://127.0.0.1").await;
    }
    reqwest::get("https://a.example").await;
    Ok(())
}

fn main() {}
