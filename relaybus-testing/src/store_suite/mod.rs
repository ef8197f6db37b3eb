//! The store contract: every behaviour of [`EventStore`](relaybus::EventStore) as one named case.
//!
//! A case is a generic async function over a [`StoreFactory`]; [`store_contract!`](crate::store_contract) makes one
//! test of each. The cases are split by subject, one file each; [`kit`] has what they share. The table of all cases is
//! [`store_cases!`](crate::store_cases), and a test of this crate proves that no case is missing in it.
//!
//! # What the cases rely on
//!
//! - Only the `now` they pass. Nothing waits for real time but a few cases about tasks that block each other.
//! - A claimer may not see the unclaimed work of another (a store may lease groups of deliveries), so a case that
//!   expects work keeps taking turns, and a case that hands work from one worker to another ends the first one's session
//!   or lets it expire.
//! - A session is renewed with every turn unless the case is about its end; a dead one is taken over ten minutes later,
//!   which leaves room for any margin of a store.
//! - Differences that a store declares in its [`Capabilities`](relaybus::store::Capabilities) change what a case expects,
//!   never whether it runs.
//!
//! # Cancel safety
//!
//! A case is a test: dropping one leaves its store to the factory, which cleans up when it is dropped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "contract cases are tests: a failed expectation is their result"
)]

pub mod admin;
pub mod append;
pub mod claim;
pub mod dropped;
mod factory;
pub mod fidelity;
pub mod history;
pub mod inbox;
pub mod kit;
pub mod lease;
pub mod order;
pub mod purge;
pub mod races;
mod run;
pub mod runs;
pub mod settle;
pub mod starvation;
mod table;
pub mod time;
pub mod transactions;

pub use factory::StoreFactory;
pub use run::{CASE_LIMIT, run};
