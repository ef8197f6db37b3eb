//! What a turn takes and answers: the claim, its runs, and what they carry.

use std::sync::Arc;

use smallvec::SmallVec;

use super::lease::Lease;
use super::settle::{Completed, Settled};
use crate::clock::Timestamp;
use crate::envelope::{Envelope, RawPayload};
use crate::handler_id::HandlerId;

/// One turn of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnRequest<'a> {
    /// The time of sending.
    pub now: Timestamp,
    /// Deliveries whose handlers succeeded.
    pub completed: &'a [Completed],
    /// Leases that ended without a statement of this session: completed in their handler's transaction, or found gone.
    /// The store forgets them; it writes nothing for them.
    pub finished: &'a [Lease],
    /// The new expiry of the session, when it is time to renew.
    pub renew: Option<Timestamp>,
    /// Whether to look for expired sessions and for work that ordinary claims may have passed. Once a poll interval.
    pub sweep: bool,
    /// What to claim, if anything.
    pub claim: Option<ClaimRequest<'a>>,
}

impl<'a> TurnRequest<'a> {
    /// A turn that does nothing yet.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { now, completed: &[], finished: &[], renew: None, sweep: false, claim: None }
    }

    /// The same turn, also claiming.
    #[must_use]
    pub fn claiming(mut self, claim: ClaimRequest<'a>) -> Self {
        self.claim = Some(claim);
        self
    }

    /// The same turn, also completing.
    #[must_use]
    pub fn completing(mut self, completed: &'a [Completed]) -> Self {
        self.completed = completed;
        self
    }
}

/// What to claim: at most `limit` runs, of the handlers listed and of no others.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClaimRequest<'a> {
    /// The handlers with free slots, and how many.
    pub handlers: &'a [HandlerSlots],
    /// Most runs.
    pub limit: usize,
    /// Most deliveries in one run.
    pub run_length: usize,
}

impl<'a> ClaimRequest<'a> {
    /// A claim of at most `limit` runs with at most `run_length` deliveries each.
    #[must_use]
    pub fn new(handlers: &'a [HandlerSlots], limit: usize, run_length: usize) -> Self {
        Self { handlers, limit, run_length }
    }
}

/// A handler and how many runs of it may be claimed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HandlerSlots {
    /// The handler.
    pub handler: HandlerId,
    /// Most runs of it.
    pub limit: usize,
}

impl HandlerSlots {
    /// A handler and its limit.
    #[must_use]
    pub fn new(handler: HandlerId, limit: usize) -> Self {
        Self { handler, limit }
    }
}

/// The answer to a turn.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Turn {
    /// One answer for each of `completed`, in its order.
    pub completed: Vec<Settled>,
    /// What was claimed.
    pub runs: Vec<Run>,
    /// More may be due than was claimed: the limit was reached, or the store stopped looking before the end.
    pub more: bool,
    /// Distinct groups of deliveries (lanes) that the claim touched, where the store leases groups.
    pub lanes: usize,
    /// Sessions of dead workers that this turn took over.
    pub taken_over: usize,
}

impl Turn {
    /// An answer.
    #[must_use]
    pub fn new(completed: Vec<Settled>, runs: Vec<Run>, more: bool) -> Self {
        Self { completed, runs, more, lanes: 0, taken_over: 0 }
    }
}

/// Consecutive due deliveries of one handler and key, run strictly in order by one task; an unkeyed run has one.
///
/// Only the first is started on the strength of the claim. By default the next one starts when the completion of the one
/// before is durable; `order = "replay"` lets it start earlier.
#[derive(Clone, Debug)]
pub struct Run {
    /// The deliveries; never empty.
    pub deliveries: SmallVec<[Claimed; 1]>,
}

impl Run {
    /// A run of one delivery.
    #[must_use]
    pub fn single(claimed: Claimed) -> Self {
        Self { deliveries: SmallVec::from_buf([claimed]) }
    }
}

/// A claimed delivery with its event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claimed {
    /// The lease of this claim.
    pub lease: Lease,
    /// The event.
    pub event: Arc<Envelope<RawPayload>>,
    /// Attempts that were charged before this one.
    pub attempts: u32,
    /// When the event was stored.
    pub stored_at: Timestamp,
}

impl Claimed {
    /// A claimed delivery.
    #[must_use]
    pub fn new(lease: Lease, event: Arc<Envelope<RawPayload>>, attempts: u32, stored_at: Timestamp) -> Self {
        Self { lease, event, attempts, stored_at }
    }

    /// Whether the delivery may have run before: an earlier claim of it ended without completing it.
    #[must_use]
    pub fn redelivered(&self) -> bool {
        self.lease.token.claims > 0
    }
}
