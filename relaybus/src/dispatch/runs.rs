//! The runs in flight: handing them to the slots, taking in what the slots report, and going on when a completion is durable.

use std::collections::VecDeque;
use std::time::Duration;

use smallvec::SmallVec;

use super::chained;
use super::ledger::{ActiveRun, Subject};
use super::pump::Pump;
use super::slots::{Job, Report};
use crate::error::Error;
use crate::observe::{Interest, Stage};
use crate::run::Ending;
use crate::store::{Completed, Lease, Run, RunPart, Settled};

/// A completion that the store has not answered yet.
#[derive(Debug)]
pub(super) struct PendingCompletion {
    pub(super) completed: Completed,
    /// The strict run that waits for it.
    pub(super) waits: Option<usize>,
    /// It was sent before and the answer was lost: "gone" then means that the lost statement did it.
    pub(super) repeated: bool,
}

impl Pump {
    /// Takes in the answers to the first `count` completions.
    pub(super) fn completed(&mut self, count: usize, answers: &[Settled]) {
        let sent: Vec<PendingCompletion> = self.completions.drain(..count).collect();
        for (place, pending) in sent.into_iter().enumerate() {
            let durable = match answers.get(place) {
                Some(Settled::Applied) => true,
                Some(Settled::Gone) => pending.repeated,
                Some(Settled::Lost) | None => false,
            };
            if durable {
                self.report_completed(&pending.completed.lease);
            } else {
                self.report_lost(&pending.completed.lease);
            }
            if let Some(run) = pending.waits {
                self.advance(run, durable);
            }
        }
        if !self.completions.is_empty() {
            self.first_completion = self.engine.clock.monotonic();
        }
    }

    /// The completion of a strict run's delivery is durable: its next one may start.
    fn advance(&mut self, run: usize, durable: bool) {
        let Some(active) = self.ledger.get_mut(run) else { return };
        let next = if durable && self.claiming { active.rest.pop_front() } else { None };
        if let Some(next) = next {
            let job = Job {
                run,
                spec: active.spec.clone(),
                deliveries: SmallVec::from_buf([next]),
                followed: !active.rest.is_empty(),
                cancel: self.cancel.clone(),
            };
            self.in_slots += 1;
            self.slots.desk.submit(job);
            return;
        }
        self.end_run(run);
    }

    pub(super) fn end_run(&mut self, run: usize) {
        let Some(ended) = self.ledger.remove(run) else { return };
        let keyed = matches!(ended.subject, Subject::Key(..));
        let useful = self.ledger.settles_usefully(ended.handler, keyed);
        self.schedule.settled(useful);
        if !self.held.is_empty() {
            for held in std::mem::take(&mut self.held) {
                self.start(held);
            }
        }
    }

    /// Gives a claimed run to the slots.
    pub(super) fn start(&mut self, run: Run) {
        let Some(first) = run.deliveries.first() else { return };
        let Some((handler, spec)) = self.ledger.spec(&first.lease.handler) else { return };
        let subject = Subject::of(&first.lease);
        if self.ledger.blocks(&subject) {
            self.held.push(run);
            return;
        }
        self.ledger.got(handler);
        let mut deliveries = run.deliveries;
        let mut rest = VecDeque::new();
        if !chained(&spec) {
            rest.extend(deliveries.drain(1..));
        }
        let began = self.engine.clock.monotonic();
        let followed = !rest.is_empty();
        let active =
            ActiveRun { spec: spec.clone(), handler, rest, subject, orphaned: false, began, reported_stuck: false };
        let run = self.ledger.add(active);
        self.in_slots += 1;
        self.slots.desk.submit(Job { run, spec, deliveries, followed, cancel: self.cancel.clone() });
    }

    /// Takes in what the slots report.
    pub(super) fn collect(&mut self) {
        let mut reports = std::mem::take(&mut self.reports);
        self.slots.desk.collect(&mut reports);
        for report in reports.drain(..) {
            self.take_in(report);
        }
        self.reports = reports;
    }

    fn take_in(&mut self, report: Report) {
        let Report { run, outcome, unstarted, last } = report;
        self.ended += 1;
        if last {
            self.in_slots -= 1;
        }
        let Some(active) = self.ledger.get_mut(run) else { return };
        if active.orphaned {
            match outcome.ending {
                // Its commit was fenced by the token, so it came before the takeover.
                Ending::Committed => self.report_completed(outcome.lease()),
                _ => self.report_lost(outcome.lease()),
            }
            if last {
                self.end_run(run);
            }
            return;
        }
        match outcome.ending {
            ended @ (Ending::Succeeded | Ending::FoundGone) => {
                let repeated = matches!(ended, Ending::FoundGone);
                let more = !active.rest.is_empty() || !last;
                let part =
                    if more && (self.claiming || chained(&active.spec)) { RunPart::Continues } else { RunPart::Last };
                let completed = Completed::new(outcome.claimed.lease, part);
                if self.completions.is_empty() {
                    self.first_completion = self.engine.clock.monotonic();
                }
                let chained = chained(&active.spec);
                let waits = (!chained).then_some(run);
                self.completions.push(PendingCompletion { completed, waits, repeated });
                if chained && last {
                    self.end_run(run);
                }
            }
            Ending::Committed => {
                self.report_completed(&outcome.claimed.lease);
                self.attempt_possible();
                self.engine.breaks.ended(&outcome.claimed.lease);
                self.finished.push(outcome.claimed.lease);
                if last {
                    self.end_run(run);
                }
            }
            Ending::Failed(_) | Ending::Impossible(_) | Ending::Broken(_) | Ending::Stopped | Ending::LeaseLost => {
                let mut rest: Vec<Lease> = unstarted.into_iter().map(|claimed| claimed.lease).collect();
                rest.extend(active.rest.drain(..).map(|claimed| claimed.lease));
                let spec = active.spec.clone();
                self.failed(run, &spec, outcome, rest);
            }
        }
    }

    /// Whether completions are written now, with a turn of their own if need be.
    pub(super) fn flush_due(&self, now: Duration, free: usize) -> bool {
        if self.completions.is_empty() {
            return false;
        }
        let options = &self.engine.options.dispatcher;
        // When no slot is at work, nothing can join the group but what a wake-up brings.
        (self.in_slots == 0 && !self.waits_for_wake(now, free))
            || self.completions.len() >= options.completion_batch
            || now >= self.first_completion + options.completion_window
    }

    /// Whether completions are better sent with the claim of the next wake-up: no key waits for them, no handler has reached its
    /// own limit, and slots are plenty.
    fn waits_for_wake(&self, now: Duration, free: usize) -> bool {
        self.claiming
            && !self.manual
            && free * 2 >= self.engine.options.dispatcher.concurrency
            && self.schedule.expects_wake(now)
            && self.completions.iter().all(|pending| {
                pending.completed.lease.key.is_none()
                    && !pending.waits.is_some_and(|run| self.ledger.fills_its_handler(run))
            })
    }

    fn report_completed(&self, lease: &Lease) {
        self.engine.observers.call(Interest::DELIVERY, |observer| observer.delivery_completed(&lease.delivery_id()));
    }

    pub(super) fn report_lost(&self, lease: &Lease) {
        if self.engine.observers.want(Interest::DELIVERY) {
            let id = lease.delivery_id();
            self.engine.observers.call(Interest::DELIVERY, |observer| observer.lease_lost(&id));
        }
        tracing::warn!(handler = %lease.handler, event = %lease.event_id, "lease lost while the delivery ran");
    }

    /// Reports handlers that ran far past their timeout: they block their thread, so that their future cannot be dropped. Their
    /// slot is gone until they return.
    pub(super) fn report_stuck(&mut self, now: Duration) {
        for active in self.ledger.iter_mut() {
            let Some(timeout) = active.spec.timeout else { continue };
            let ran = now.saturating_sub(active.began);
            if !active.reported_stuck && active.rest.is_empty() && ran > timeout + STUCK_AFTER {
                active.reported_stuck = true;
                let message = format!(
                    "handler `{}` runs for {ran:?}, past its timeout of {timeout:?}: it blocks its thread, use `spawn_blocking` in it",
                    active.spec.id
                );
                self.engine.observers.failure(Stage::Dispatch, &Error::lifecycle(message));
            }
        }
    }
}

/// Time past its timeout after which a handler counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);
