//! relaybus through a re-export.

#![allow(dead_code, reason = "that it compiles is what it is for")]

mod framework {
    pub(crate) use ::relaybus as bus;
}

use framework::bus::memory::MemoryTransaction;

#[framework::bus::transaction(crate = framework::bus, isolation = "read committed")]
async fn place(_: &mut MemoryTransaction) -> framework::bus::Result {
    Ok(())
}
