//! Shared helpers of the tests of the whole bus.
//!
//! - `crash` runs workers and publishers as processes on one SQLite file, kills them at random, and checks the same.
//! - [`sim`] runs several buses over one store under virtual time, by seed, and checks what the bus promises.
#![allow(
    clippy::disallowed_methods,
    reason = "these helpers own time, chance and tasks: they drive the buses under test with their own"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation here is a failed test")]

#[cfg(unix)]
pub mod crash;
pub mod sim;
