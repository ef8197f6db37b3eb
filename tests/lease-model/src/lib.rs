//! An exhaustively searched model of the lease protocol, as the PostgreSQL store has it.
//!
//! The model is the protocol with everything else taken away: a few deliveries, lanes, handlers and workers. A step is what the
//! database does at once (a statement, a commit), or what a worker does between two statements. Steps are named as the
//! statements of the store are. The search takes every order of steps, and lets processes die, stand still, lose answers,
//! and statements run late.
//!
//! # What holds
//!
//! - No two runs of a key, or of a delivery, by workers that live and are within their local deadline.
//! - Deliveries of a key start in their order, none before what is before it has completed or is dead; in a run that may be
//!   replayed, none before its worker is done with what is before it.
//! - An ended claim changes nothing: no completion, no settlement. A handler's own transaction commits at most once.
//! - A takeover fences everything that ran, charges what ran or what stood at the head, and nobody twice for another.
//! - Every lane belongs to nobody, or to a session that has a row and lists the handler. A number has one row.
//! - From every state there is a way to the end of all work.
//!
//! # What is not modelled
//!
//! How far a claim looks (cursors, sweeps, limits), rewrites of the table, clocks apart, the rules of publishing and of
//! purging, more lanes and deliveries than a handful. These have tests of their own against a real server.
//!
//! A worker that is not paused renews in time. Rows of a table that one statement touches are touched at once, apart from
//! configurations whose turns read and write at different moments.

#![allow(clippy::disallowed_methods, reason = "a search tells how long it took; no bus runs here")]

mod catches;
mod config;
mod configurations;
mod database;
mod explore;
mod faults;
mod invariants;
mod lanes;
mod mutant;
mod rank;
mod show;
mod state;
mod statement;
mod step;
mod takeover;
mod turns;
mod work;

pub use catches::{Catch, catches, made_up_for};
pub use config::{Budget, Config, Delivery, Worker};
pub use configurations::{every, few};
pub use explore::{Fault, Report, STUCK, search};
pub use mutant::Mutant;
