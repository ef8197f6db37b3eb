//! The dispatcher: claims due deliveries, runs them in its slots, and settles what became of them.
//!
//! [`pump`] is its one voice to the store, [`schedule`] decides when it claims, [`slots`] run the handlers, [`ledger`]
//! knows what is in flight, [`breaks`] whose fault a broken transaction is.

mod batch;
mod breaks;
mod lease;
mod ledger;
mod pump;
mod runs;
mod schedule;
mod settling;
mod slots;
mod turn;
mod wake;

pub(crate) use batch::run_batches;
pub(crate) use breaks::Breaks;
pub(crate) use pump::Pump;
pub(crate) use wake::Wake;

use crate::bus::HandlerSpec;
use crate::registry::Order;

/// How far a stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Claiming and running.
    Running,
    /// Running what was claimed.
    Draining,
    /// Cancelling what still runs.
    Cancelling,
}

/// Whether a slot may go through a run by itself: each completion is durable by the handler's own commit, or the handler
/// asked not to wait for it.
fn chained(spec: &HandlerSpec) -> bool {
    spec.transactional || spec.order == Order::Replay
}
