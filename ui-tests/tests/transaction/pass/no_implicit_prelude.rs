//! Nothing of the standard library in scope.

#![no_implicit_prelude]
#![allow(dead_code, reason = "that it compiles is what it is for")]

#[::relaybus::transaction]
async fn plain(_: &mut ::relaybus::memory::MemoryTransaction) -> ::relaybus::Result {
    ::std::result::Result::Ok(())
}

#[::relaybus::transaction(isolation = "serializable", attempts = 2)]
async fn full(_: &mut ::relaybus::memory::MemoryTransaction) -> ::relaybus::Result {
    ::std::result::Result::Ok(())
}
