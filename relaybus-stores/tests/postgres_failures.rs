//! The PostgreSQL store on a server that fails: restarted, its connections ended, read-only, out of connections, disk or patience.
//!
//! Each test has a server of its own, of the programs that `cargo xtask services up` finds or installs.
#![cfg(all(unix, feature = "postgres"))]
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

#[path = "../../xtask/src/cluster.rs"]
mod cluster;
#[path = "postgres/failures.rs"]
mod failures;
#[path = "postgres/outage.rs"]
mod outage;
