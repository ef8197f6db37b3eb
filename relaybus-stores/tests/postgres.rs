//! Tests of the PostgreSQL store: the contract that every store passes, and what only this one can do wrong.
//!
//! They need a server: `RELAYBUS_TEST_POSTGRES_URL` names it, or `cargo xtask services up` starts one that they find.
#![cfg(feature = "postgres")]
#![allow(
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests of real servers, connections and tasks; their names say what they check"
)]

#[path = "postgres/backlogs.rs"]
mod backlogs;
#[path = "postgres/clocks.rs"]
mod clocks;
#[path = "postgres/contract.rs"]
mod contract;
#[path = "postgres/endings.rs"]
mod endings;
#[path = "postgres/handles.rs"]
mod handles;
#[path = "postgres/kit.rs"]
mod kit;
#[path = "postgres/lost.rs"]
mod lost;
#[path = "postgres/merged.rs"]
mod merged;
#[path = "postgres/numbers.rs"]
mod numbers;
#[path = "postgres/passed.rs"]
mod passed;
#[path = "postgres/plans.rs"]
mod plans;
#[path = "postgres/protocol.rs"]
mod protocol;
#[path = "postgres/proxy.rs"]
mod proxy;
#[path = "postgres/publishing.rs"]
mod publishing;
#[path = "postgres/retention.rs"]
mod retention;
#[path = "postgres/scale.rs"]
mod scale;
#[path = "postgres/schema.rs"]
mod schema;
#[path = "postgres/transactions.rs"]
mod transactions;
#[path = "postgres/wakeups.rs"]
mod wakeups;
