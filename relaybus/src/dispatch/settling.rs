//! Settling what did not complete: retries, dead letters and releases, repeated until the store answers.

use std::sync::Arc;
use std::time::Duration;

use super::pump::Pump;
use super::runs::PendingCompletion;
use crate::bus::HandlerSpec;
use crate::error::{Error, ErrorInfo};
use crate::observe::{Interest, Stage};
use crate::run::{Ending, Failure, Outcome, judge};
use crate::store::{Completed, EventStore, Lease, RunPart, Settled, Settlement, Verdict};

/// A failed attempt that the store has not answered yet.
#[derive(Debug)]
pub(super) struct PendingFailure {
    pub(super) settlement: Settlement,
    pub(super) run: usize,
    attempt: u32,
    report: Option<(ErrorInfo, Option<Duration>)>,
    /// It was sent before and the answer was lost: "lost" then means that the lost statement did it.
    repeated: bool,
    /// Observers have been told already that its lease is lost.
    pub(super) told_lost: bool,
}

impl Pump {
    /// Decides what happens with an attempt that did not succeed, and keeps it until the store has answered.
    pub(super) fn failed(&mut self, run: usize, spec: &Arc<HandlerSpec>, outcome: Outcome, rest: Vec<Lease>) {
        let attempts = outcome.claimed.attempts;
        let lease = outcome.claimed.lease;
        let told_lost = matches!(outcome.ending, Ending::LeaseLost);
        // Attempts that crashes used up are buried without another one.
        let ran = !matches!(&outcome.ending, Ending::Failed(failure) if failure.is_exhausted);
        let (verdict, report) = match outcome.ending {
            Ending::Stopped => (Verdict::Release, None),
            Ending::Impossible(error) => {
                // The store failed around the handler: the delivery waits with the claims, and is charged nothing.
                self.attempt_impossible(error);
                (Verdict::Release, None)
            }
            Ending::Broken(error) => {
                let now = self.engine.clock.monotonic();
                if self.engine.breaks.is_charged(&lease, now) {
                    self.judged(spec, attempts, Failure::of(&error))
                } else {
                    self.attempt_impossible(error);
                    (Verdict::Release, None)
                }
            }
            Ending::LeaseLost => {
                self.report_lost(&lease);
                self.judged(spec, attempts, Failure::of(&Error::LeaseLost))
            }
            Ending::Failed(failure) => self.judged(spec, attempts, failure),
            Ending::Succeeded | Ending::Committed | Ending::FoundGone => return,
        };
        if matches!(verdict, Verdict::Bury { .. }) {
            self.engine.breaks.ended(&lease);
        }
        let mut settlement = Settlement::new(lease, verdict);
        settlement.rest = rest;
        let attempt = attempts.saturating_add(u32::from(ran));
        self.failures.push(PendingFailure { settlement, run, attempt, report, repeated: false, told_lost });
    }

    fn judged(
        &self,
        spec: &HandlerSpec,
        attempts: u32,
        failure: Failure,
    ) -> (Verdict, Option<(ErrorInfo, Option<Duration>)>) {
        let attempt = attempts.saturating_add(1);
        let judgement = judge(spec, attempt, failure, self.engine.now(), &self.engine.chance);
        (judgement.verdict, Some((judgement.info, judgement.delay)))
    }

    /// Whether the answer to a settlement was lost: it may or may not have taken effect.
    pub(super) fn settlement_in_doubt(&self) -> bool {
        self.failures.iter().any(|failure| failure.repeated)
    }

    /// Sends the failures in doubt, or every one when there is none. An error keeps them for the next try.
    pub(super) async fn settle_failures(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        // What failed since may stand behind a completion that has not gone out; those in doubt were sent when none waited.
        self.failures.sort_by_key(|failure| !failure.repeated);
        let in_doubt = self.failures.iter().take_while(|failure| failure.repeated).count();
        let count = if in_doubt > 0 { in_doubt } else { self.failures.len() };
        let settlements: Vec<Settlement> =
            self.failures[..count].iter().map(|failure| failure.settlement.clone()).collect();
        let now = self.engine.now();
        let engine = self.engine.clone();
        match self.answered(engine.store.settle(&mut session, &settlements, now)).await {
            Ok(answers) => {
                self.session = Some(session);
                self.store_answered();
                let settled: Vec<PendingFailure> = self.failures.drain(..count).collect();
                for (place, failure) in settled.into_iter().enumerate() {
                    self.settled(failure, answers.get(place).copied().unwrap_or(Settled::Lost));
                }
            }
            Err(Error::SessionLost) => self.session_lost(),
            Err(error) => {
                self.session = Some(session);
                for failure in &mut self.failures[..count] {
                    failure.repeated = true;
                }
                self.store_failed(Stage::Settle, error);
            }
        }
    }

    fn settled(&mut self, failure: PendingFailure, answer: Settled) {
        match answer {
            Settled::Applied => self.report_failure(&failure),
            // The handler's own commit, which nobody could answer for, if the session still stands.
            Settled::Gone if !failure.repeated => {
                if self.completions.is_empty() {
                    self.first_completion = self.engine.clock.monotonic();
                }
                let completed = Completed::new(failure.settlement.lease, RunPart::Last);
                self.completions.push(PendingCompletion { completed, waits: Some(failure.run), repeated: true });
                return;
            }
            // Either the lost statement did it, or the session was taken over: the next turn tells.
            Settled::Gone | Settled::Lost if failure.repeated && !failure.told_lost => {
                self.doubted.push(failure);
                return;
            }
            Settled::Gone | Settled::Lost if failure.told_lost => {}
            Settled::Gone | Settled::Lost => self.report_lost(&failure.settlement.lease),
        }
        self.end_run(failure.run);
    }

    /// The session still stands, so nobody but it has changed what it held.
    pub(super) fn doubts_resolved(&mut self) {
        for failure in std::mem::take(&mut self.doubted) {
            self.report_failure(&failure);
            self.end_run(failure.run);
        }
    }

    fn report_failure(&self, failure: &PendingFailure) {
        let Some((info, delay)) = &failure.report else { return };
        let lease = &failure.settlement.lease;
        let (handler, event) = (&lease.handler, &lease.event_id);
        match delay {
            Some(delay) => {
                tracing::debug!(%handler, %event, attempt = failure.attempt, ?delay, error = %info.message, "retry scheduled");
            }
            None => {
                tracing::warn!(%handler, %event, attempt = failure.attempt, error = %info.message, "delivery dead");
            }
        }
        if !self.engine.observers.want(Interest::DELIVERY) {
            return;
        }
        let id = lease.delivery_id();
        self.engine.observers.call(Interest::DELIVERY, |observer| match delay {
            Some(delay) => observer.retry_scheduled(&id, failure.attempt, *delay, info),
            None => observer.delivery_dead(&id, failure.attempt, info),
        });
    }
}
