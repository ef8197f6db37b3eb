//! Names that generated code must not take for the usual ones.

#![allow(unused_imports, dead_code, reason = "that they are in scope is what they are for")]

use crate::names::*;
use ::relaybus::memory::MemoryTransaction;
use ::relaybus::transaction;

type Answer = ::std::result::Result<u8, ::relaybus::Error>;

#[transaction(isolation = "repeatable read")]
async fn place(tx: &mut MemoryTransaction, __relaybus_scope: u8) -> Answer {
    let _ = tx;
    Answer::Ok(__relaybus_scope)
}
