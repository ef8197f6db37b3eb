//! How a claim ends: completed, rescheduled, buried or released.

use super::lease::Lease;
use crate::clock::Timestamp;

/// A delivery whose handler succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completed {
    /// The lease it ran under.
    pub lease: Lease,
    /// Whether the rest of its run stays with this session.
    pub part: RunPart,
}

impl Completed {
    /// A completion.
    #[must_use]
    pub fn new(lease: Lease, part: RunPart) -> Self {
        Self { lease, part }
    }
}

/// Where a delivery stands in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPart {
    /// The run ends here: the next delivery of the key is anybody's.
    Last,
    /// The session goes on with the next delivery of the run, which it already holds.
    Continues,
}

/// The end of an attempt that did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// The lease it ran under.
    pub lease: Lease,
    /// What happens to the delivery.
    pub verdict: Verdict,
    /// The deliveries behind it in its run. They were never started and go back as they were: no attempt is charged,
    /// their tokens end with this settlement.
    pub rest: Vec<Lease>,
}

impl Settlement {
    /// A settlement.
    #[must_use]
    pub fn new(lease: Lease, verdict: Verdict) -> Self {
        Self { lease, verdict, rest: Vec::new() }
    }
}

/// What happens to a delivery that did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It failed and runs again at `due_at`. Charges an attempt.
    Reschedule {
        /// When it becomes due.
        due_at: Timestamp,
        /// The failure, as the JSON text of an [`crate::ErrorInfo`].
        error: String,
    },
    /// It failed for good. Charges an attempt; the followers of its key are released.
    Bury {
        /// The failure, as the JSON text of an [`crate::ErrorInfo`].
        error: String,
        /// Whether this end costs an attempt: it does when the handler ran.
        charge: bool,
    },
    /// It goes back as it was, due as before. Charges nothing.
    Release,
}

/// What became of a write that was fenced by a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was applied.
    Applied,
    /// The delivery is not there any more: it completed before, under this lease or another.
    Gone,
    /// The delivery is there, but not under this lease; nothing was changed.
    Lost,
}
