//! The pump: the one task of a dispatcher that talks to the store.
//!
//! It owns the session, so its statements go one after another. Each round it collects what the slots report, settles
//! failures, and takes a turn when one is due: completions to write, a renewal, or a claim. While there is nothing to do it
//! sleeps until the next thing it knows of, or a wake-up.
//!
//! # Invariants
//!
//! - *Nothing is forgotten*: a completion or a failure stays here until the store has answered it. A lost answer is
//!   repeated; every statement can be.
//! - *Order*: the next delivery of a strict run goes to a slot only after the turn that completed the one before was
//!   answered. Completions go out before failures, because a failure may stand behind them in its run.
//! - *In doubt goes first*: a settlement whose answer was lost is sent again before anything else. A turn in between would
//!   record as held what the lost settlement gave back, and a takeover after a crash would charge what never ran.
//! - *Trust ends early*: the local deadline is counted from before the renewal was sent. After it nothing starts, and
//!   what runs is cancelled.
//! - *A lost session is lost*: its runs become orphans. They keep their slots and block their key until they have ended;
//!   their results are dropped, for their leases are no more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Phase;
use super::lease::fresh_cancel;
use super::ledger::Ledger;
use super::runs::PendingCompletion;
use super::schedule::{Next, Schedule};
use super::settling::PendingFailure;
use super::slots::{Report, Slots};
use crate::bus::Engine;
use crate::error::Error;
use crate::observe::Stage;
use crate::registry::States;
use crate::run::Cancel;
use crate::store::{AnySession, HandlerSlots, Lease, Run};

/// First wait after the store failed.
pub(super) const FIRST_BACKOFF: Duration = Duration::from_millis(50);

/// The state of a dispatcher.
pub(crate) struct Pump {
    pub(super) engine: Arc<Engine>,
    pub(super) slots: Slots,
    pub(super) session: Option<AnySession>,
    pub(super) schedule: Schedule,
    pub(super) ledger: Ledger,
    pub(super) completions: Vec<PendingCompletion>,
    pub(super) first_completion: Duration,
    pub(super) failures: Vec<PendingFailure>,
    /// Failures whose lost settlement was repeated and found another state.
    pub(super) doubted: Vec<PendingFailure>,
    pub(super) finished: Vec<Lease>,
    pub(super) held: Vec<Run>,
    pub(super) cancel: Cancel,
    pub(super) renew_at: Duration,
    pub(super) valid_until: Duration,
    /// What ran when `valid_until` passed has been cancelled.
    pub(super) expired: bool,
    /// Jobs that slots have not finished.
    pub(super) in_slots: usize,
    /// When to look for the sessions of dead workers again.
    pub(super) sweep_at: Duration,
    store_free_at: Duration,
    pub(super) backoff: Duration,
    /// Wait after an attempt that the store made impossible, and until when claims wait because of one.
    attempt_backoff: Duration,
    claims_wait_until: Duration,
    pub(super) reports: Vec<Report>,
    pub(super) claimable: Vec<HandlerSlots>,
    /// Whether runs go on: false once the dispatcher stops.
    pub(super) claiming: bool,
    /// Claims come from `run_batch` alone, not from the schedule.
    pub(super) manual: bool,
    /// Attempts that have ended, and the error that ended a batch, for `run_batch`.
    pub(super) ended: usize,
    pub(super) fault: Option<Error>,
    flights: Option<watch::Sender<usize>>,
    /// Called when a stop has waited long enough for handlers.
    pub(super) stop_now: CancellationToken,
}

impl Pump {
    pub(crate) fn new(engine: Arc<Engine>, states: &Arc<States>) -> Self {
        let options = &engine.options.dispatcher;
        let slots = Slots::start(&engine, states, options.concurrency);
        Self {
            schedule: Schedule::new(options.batch(), options.poll_interval),
            ledger: Ledger::new(&engine.handlers),
            slots,
            session: None,
            completions: Vec::new(),
            first_completion: Duration::ZERO,
            failures: Vec::new(),
            doubted: Vec::new(),
            finished: Vec::new(),
            held: Vec::new(),
            cancel: fresh_cancel(),
            renew_at: Duration::ZERO,
            valid_until: Duration::ZERO,
            expired: false,
            in_slots: 0,
            sweep_at: Duration::ZERO,
            store_free_at: Duration::ZERO,
            backoff: FIRST_BACKOFF,
            attempt_backoff: FIRST_BACKOFF,
            claims_wait_until: Duration::ZERO,
            reports: Vec::new(),
            claimable: Vec::new(),
            claiming: true,
            manual: false,
            ended: 0,
            fault: None,
            flights: None,
            stop_now: CancellationToken::new(),
            engine,
        }
    }

    /// Also tells how many deliveries are in flight, for a stop that has to give up.
    pub(crate) fn reporting(mut self, flights: watch::Sender<usize>) -> Self {
        self.flights = Some(flights);
        self
    }

    /// Calling it cancels what runs, even while the store does not answer.
    pub(crate) fn stop_now(&self) -> CancellationToken {
        self.stop_now.clone()
    }

    /// Works until the phase says stop and nothing is in flight any more.
    pub(crate) async fn run(mut self, mut phase: watch::Receiver<Phase>) {
        loop {
            match *phase.borrow_and_update() {
                Phase::Running => {}
                Phase::Draining => self.stop_claiming(),
                Phase::Cancelling => {
                    self.stop_claiming();
                    self.cancel_for_stop();
                }
            }
            self.collect();
            if !self.claiming {
                self.report_flights();
            }
            if !self.claiming && self.is_idle() {
                break;
            }
            if let Some(until) = self.step().await {
                self.rest(until, &mut phase).await;
            }
        }
        self.close().await;
    }

    async fn rest(&mut self, until: Duration, phase: &mut watch::Receiver<Phase>) {
        let wait = until.saturating_sub(self.engine.clock.monotonic());
        tokio::select! {
            biased;
            () = self.slots.desk.reported() => {}
            () = self.engine.wake.woken() => {}
            _ = phase.changed() => {}
            () = self.engine.clock.sleep(wait) => {}
        }
    }

    /// Does the next thing that is due, or says until when there is nothing.
    pub(super) async fn step(&mut self) -> Option<Duration> {
        let now = self.engine.clock.monotonic();
        if self.engine.wake.take() {
            self.schedule.woken(now);
        }
        self.expire(now);
        if now < self.store_free_at {
            return Some(self.store_free_at.min(self.deadline()));
        }
        if self.session.is_none() {
            // A bus that stops needs no new session: what it holds belongs to the lost one.
            if self.claiming {
                self.open_session().await;
                return None;
            }
            return Some(now + self.engine.options.dispatcher.poll_interval);
        }
        if !self.doubted.is_empty() {
            self.turn(false).await;
            return None;
        }
        if !self.failures.is_empty() {
            if self.completions.is_empty() || self.settlement_in_doubt() {
                self.settle_failures().await;
            } else {
                self.turn(false).await;
            }
            return None;
        }
        let free = self.free_with_turn();
        let next =
            if self.claiming && !self.manual { self.schedule.next(now, free) } else { Next::WaitUntil(Duration::MAX) };
        let claim = next == Next::Claim;
        let flush = self.flush_due(now, free);
        let along = flush && self.claiming && !self.manual && self.schedule.claims_along(now, free);
        if claim || flush || now >= self.renew_at {
            self.turn(claim || along).await;
            return None;
        }
        let mut until = self.renew_at;
        if let Next::WaitUntil(at) = next {
            until = until.min(at);
        }
        if !self.completions.is_empty() {
            until = until.min(self.first_completion + self.engine.options.dispatcher.completion_window);
        }
        Some(until.min(self.deadline()))
    }

    /// Whether nothing is in flight: no run, no completion, no failure.
    pub(super) fn is_idle(&self) -> bool {
        let settled = self.completions.is_empty() && self.failures.is_empty() && self.doubted.is_empty();
        settled && self.ledger.active() == 0 && self.held.is_empty()
    }

    pub(super) fn store_failed(&mut self, stage: Stage, error: Error) {
        self.engine.observers.failure(stage, &error);
        self.fault = Some(error);
        let now = self.engine.clock.monotonic();
        if now < self.store_free_at {
            // Several handlers met the same failure: that is one failure.
            return;
        }
        self.store_free_at = now + self.backoff;
        self.schedule.hold(self.store_free_at);
        self.backoff = self.longer(self.backoff);
    }

    /// A handler could not run because the store opened no transaction for it. What the dispatcher itself asks of the store may
    /// well be answered, so completions go on; claims wait, longer each time, until a transaction commits.
    pub(super) fn attempt_impossible(&mut self, error: Error) {
        self.engine.observers.failure(Stage::Dispatch, &error);
        self.fault = Some(error);
        let now = self.engine.clock.monotonic();
        if now < self.claims_wait_until {
            return;
        }
        self.claims_wait_until = now + self.attempt_backoff;
        self.schedule.hold(self.claims_wait_until);
        self.attempt_backoff = self.longer(self.attempt_backoff);
    }

    pub(super) fn attempt_possible(&mut self) {
        self.attempt_backoff = FIRST_BACKOFF;
    }

    fn longer(&self, backoff: Duration) -> Duration {
        (backoff * 2).min(self.engine.options.dispatcher.poll_interval.max(FIRST_BACKOFF))
    }

    pub(super) fn store_answered(&mut self) {
        self.backoff = FIRST_BACKOFF;
    }

    pub(super) fn stop_claiming(&mut self) {
        self.claiming = false;
        self.slots.desk.drain();
        for run in std::mem::take(&mut self.held) {
            // Never started: closing the session hands it back.
            drop(run);
        }
    }

    pub(super) fn cancel_for_stop(&mut self) {
        self.cancel.stopping.store(true, std::sync::atomic::Ordering::SeqCst);
        self.cancel.token.cancel();
    }

    /// Tells how many deliveries are in flight, for the report of a stop that gives up.
    pub(super) fn report_flights(&self) {
        if let Some(flights) = &self.flights {
            // A run that waits for a completion or a settlement is in the ledger; a chained one has gone on.
            let chained = self.completions.iter().filter(|pending| pending.waits.is_none()).count();
            flights.send_replace(self.ledger.running_deliveries() + chained);
        }
    }
}

/// A dispatcher that is dropped in the middle drops its handlers: what they spawned hears of it.
impl Drop for Pump {
    fn drop(&mut self) {
        if self.ledger.active() > 0 {
            self.cancel_for_stop();
        }
    }
}
