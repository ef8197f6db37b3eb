//! Tests of the SQLite store: the contract that every store passes, and what only this one can do wrong.
#![cfg(feature = "sqlite")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests of real processes, files and tasks; their names say what they check"
)]

#[path = "sqlite/budgets.rs"]
mod budgets;
#[path = "sqlite/callers.rs"]
mod callers;
#[path = "sqlite/contract.rs"]
mod contract;
#[path = "sqlite/data.rs"]
mod data;
#[path = "sqlite/faults.rs"]
mod faults;
#[path = "sqlite/files.rs"]
mod files;
#[path = "sqlite/kit.rs"]
mod kit;
#[path = "sqlite/peers.rs"]
mod peers;
#[path = "sqlite/plans.rs"]
mod plans;
#[path = "sqlite/processes.rs"]
mod processes;
#[path = "sqlite/steps.rs"]
mod steps;
