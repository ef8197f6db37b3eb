//! The expansion of the macros at run time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod consumer;
mod consumers;
mod event;
mod run;
