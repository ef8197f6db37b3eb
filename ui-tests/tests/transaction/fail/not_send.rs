//! Something that cannot move between threads, across an await.

use std::rc::Rc;

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

#[transaction]
async fn place(_: &mut MemoryTransaction) -> Result {
    let here = Rc::new(5);
    std::future::ready(()).await;
    drop(here);
    Ok(())
}

fn main() {}
