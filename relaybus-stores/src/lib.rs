//! Event stores of relaybus, one module a database: each implements [`relaybus::EventStore`] and passes its contract suite.
//!
//! The in-memory store, the reference for tests, lives in `relaybus` itself.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod background;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod ids;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

/// The examples of the README, compiled with the doc tests.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../README.md")]
struct Readme;
