//! An allowance that does not say why, on a statement and on functions.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, allow_external_call, transaction};

#[transaction]
async fn place(_: &mut MemoryTransaction) -> Result {
    #[allow_external_call]
    reqwest::get("https://a.example").await;
    #[allow_external_call(reason = "")]
    reqwest::get("https://b.example").await;
    Ok(())
}

#[allow_external_call(why = "it is quick")]
async fn helper() {}

#[transaction]
#[allow_external_call]
async fn whole(_: &mut MemoryTransaction) -> Result {
    reqwest::get("https://a.example").await;
    Ok(())
}

fn main() {}
