//! What the bus does, told by its specification: one module a subject, on the in-memory store and on virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod admin;
mod bad_input;
mod by_hand;
mod errors;
mod handlers;
mod kit;
mod lifecycle;
mod middleware;
mod observers;
mod options;
mod panics;
mod publishing;
mod registered;
mod scheduling;
mod tracing_spans;
mod transactional;
mod transactions;
mod transports;
