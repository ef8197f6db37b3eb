//! From the result of an attempt to what happens with its delivery. The only place that decides it.

use super::guarded::{dropped, guarded_sync};
use crate::bus::HandlerSpec;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorInfo};
use crate::store::{Claimed, Lease, Verdict};
use crate::task::Chance;

/// How an attempt ended. `F` is what is known of a failure: the error itself while the slot has it, then what is kept.
#[derive(Debug)]
pub(crate) enum Ending<F = Failure> {
    /// The handler succeeded; its completion is still to be written.
    Succeeded,
    /// The handler succeeded and its transaction has committed the completion.
    Committed,
    /// The answer to the handler's commit was lost and the delivery is gone: its commit did that, if the session still stands.
    FoundGone,
    /// The handler failed.
    Failed(F),
    /// The attempt could not be made: the store failed around it. Nothing is charged.
    Impossible(Error),
    /// The handler succeeded, but the connection of its transaction was lost: by its own doing, or the store's.
    Broken(Error),
    /// The handler was cancelled because the bus stops, or was never called. Nothing is charged.
    Stopped,
    /// The lease was lost: whatever the handler did, the delivery belongs to somebody else.
    LeaseLost,
}

/// What is kept of the error of a failed attempt.
///
/// The error itself does not leave the slot: it is the handler's own code, and a panic of its texts or of its drop would
/// otherwise end the dispatcher.
#[derive(Debug)]
pub(crate) struct Failure {
    info: ErrorInfo,
    is_retryable: bool,
    /// Crashes had used up the attempts, so this was none.
    pub(crate) is_exhausted: bool,
}

impl Failure {
    pub(crate) fn of(error: &Error) -> Self {
        let is_exhausted = matches!(error, Error::AttemptsExhausted { .. });
        Self { info: ErrorInfo::of(error), is_retryable: error.is_retryable(), is_exhausted }
    }

    fn kept(error: Error) -> Self {
        let kept = guarded_sync(|| Ok(Self::of(&error)));
        dropped(error);
        kept.unwrap_or_else(|panic| Self::of(&panic))
    }
}

impl Ending<Error> {
    /// The ending without the error, which is dropped.
    pub(super) fn kept(self) -> Ending {
        match self {
            Self::Failed(error) => Ending::Failed(Failure::kept(error)),
            Self::Succeeded => Ending::Succeeded,
            Self::Committed => Ending::Committed,
            Self::FoundGone => Ending::FoundGone,
            Self::Impossible(error) => Ending::Impossible(error),
            Self::Broken(error) => Ending::Broken(error),
            Self::Stopped => Ending::Stopped,
            Self::LeaseLost => Ending::LeaseLost,
        }
    }
}

/// An attempt that ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) claimed: Claimed,
    pub(crate) ending: Ending,
}

/// What to do with a failed attempt.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) info: ErrorInfo,
    pub(crate) delay: Option<std::time::Duration>,
}

/// Judges a failed attempt: the next one after a backoff, or the dead letters.
pub(crate) fn judge(spec: &HandlerSpec, attempt: u32, failure: Failure, now: Timestamp, chance: &Chance) -> Judgement {
    let Failure { info, is_retryable, is_exhausted } = failure;
    if is_retryable && spec.retry.allows_another(attempt) {
        let delay = spec.retry.delay(attempt, chance.unit());
        let verdict = Verdict::Reschedule { due_at: now.after(delay), error: info.to_json() };
        return Judgement { verdict, info, delay: Some(delay) };
    }
    // A delivery whose attempts were used up by crashes was not run this time.
    Judgement { verdict: Verdict::Bury { error: info.to_json(), charge: !is_exhausted }, info, delay: None }
}

/// The error of a delivery that came back on its last attempt because its workers died: it is buried without a run.
pub(crate) fn exhausted(spec: &HandlerSpec, attempts: u32) -> Option<Error> {
    let max_attempts = spec.retry.attempts?;
    (attempts >= max_attempts).then_some(Error::AttemptsExhausted { attempts, max_attempts })
}

impl Outcome {
    pub(crate) fn lease(&self) -> &Lease {
        &self.claimed.lease
    }
}
