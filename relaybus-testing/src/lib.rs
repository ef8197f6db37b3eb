//! Test kit of relaybus: the contract suite that every store passes, a clock that a test owns, and faults on demand.
//!
//! - [`store_contract!`] turns a [`StoreFactory`] into one named test per behaviour.
//! - [`FakeClock`] stands still until a test advances it, and owns the timers of a bus on request.
//! - `catalog_snapshots!` (feature `schema`) is the test that a catalog keeps what its committed snapshot promises.
//! - [`InMemoryTransport`] records what is sent, has outages on demand and delivers what a test hands it.
//! - [`Recorder`] is a handler that records, fails on demand and says when it has seen enough.
//! - [`FaultyStore`](fault::FaultyStore) wraps a store and makes its calls fail, hang or lose their answers, by script or
//!   by seed.
#![allow(
    clippy::disallowed_methods,
    reason = "a test kit is about real tasks, timers and chance: it starts them, and decides who owns them"
)]

#[cfg(feature = "schema")]
mod catalog_snapshots;
mod fake_clock;
pub mod fault;
mod in_memory_transport;
mod recorder;
pub mod store_suite;

#[cfg(feature = "schema")]
pub use catalog_snapshots::check_catalog_snapshot;
pub use fake_clock::{FakeClock, PointInTime};
pub use in_memory_transport::{InMemoryTransport, Published};
pub use recorder::Recorder;
pub use store_suite::StoreFactory;
