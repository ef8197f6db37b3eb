//! The PostgreSQL store through a real PgBouncer in transaction mode, told of it and not.
//!
//! They need the program `pgbouncer` beside a server; `cargo xtask test` installs both.
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
#[path = "postgres/kit.rs"]
mod kit;
#[path = "postgres/log.rs"]
mod log;
#[path = "../../xtask/src/pgbouncer.rs"]
mod pgbouncer;
#[path = "postgres/pooled.rs"]
mod pooled;
