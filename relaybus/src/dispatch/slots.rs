//! Slots: the tasks that run handlers, as many as the concurrency, each kept for the life of the dispatcher.
//!
//! A slot takes one job after another from a shared queue, so a delivery costs no task of its own. It checks the local
//! deadline of the lease right before each start: after it, another worker may own the delivery.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;
use tokio::sync::{Notify, Semaphore};

use crate::bus::{Engine, HandlerSpec};
use crate::registry::States;
use crate::run::{Cancel, Ending, Outcome, run_delivery};
use crate::store::{Claimed, RunPart};
use crate::task::{self, AbortOnDrop};

/// Deliveries of one run for one slot, to be run in order.
#[derive(Debug)]
pub(super) struct Job {
    /// The run's place in the ledger.
    pub(super) run: usize,
    pub(super) spec: Arc<HandlerSpec>,
    pub(super) deliveries: SmallVec<[Claimed; 1]>,
    /// Whether the session holds more of this run behind these.
    pub(super) followed: bool,
    pub(super) cancel: Cancel,
}

/// What a slot reports after each delivery.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) run: usize,
    pub(super) outcome: Outcome,
    /// Deliveries of the job that were not started because this one did not succeed.
    pub(super) unstarted: SmallVec<[Claimed; 1]>,
    /// Whether the slot is done with the job.
    pub(super) last: bool,
}

/// The queue in front of the slots and the reports behind them.
#[derive(Debug, Default)]
pub(super) struct Desk {
    jobs: Mutex<VecDeque<Job>>,
    available: Option<Semaphore>,
    reports: Mutex<Vec<Report>>,
    reported: Notify,
    /// Monotonic microseconds up to which the session's leases are certainly ours.
    valid_until: AtomicU64,
    /// Runs are not gone through any further: the dispatcher stops.
    draining: AtomicBool,
}

impl Desk {
    fn new() -> Self {
        Self { available: Some(Semaphore::new(0)), ..Self::default() }
    }

    pub(super) fn submit(&self, job: Job) {
        lock(&self.jobs).push_back(job);
        if let Some(available) = &self.available {
            available.add_permits(1);
        }
    }

    /// Moves all reports to the end of `into`.
    pub(super) fn collect(&self, into: &mut Vec<Report>) {
        into.append(&mut lock(&self.reports));
    }

    pub(super) async fn reported(&self) {
        self.reported.notified().await;
    }

    pub(super) fn set_valid_until(&self, until: Duration) {
        self.valid_until.store(micros(until), Ordering::Release);
    }

    pub(super) fn is_valid(&self, now: Duration) -> bool {
        micros(now) < self.valid_until.load(Ordering::Acquire)
    }

    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    fn report(&self, report: Report) {
        lock(&self.reports).push(report);
        self.reported.notify_one();
    }

    async fn next(&self) -> Option<Job> {
        let permit = self.available.as_ref()?.acquire().await.ok()?;
        permit.forget();
        lock(&self.jobs).pop_front()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The slots of a dispatcher. Dropping them aborts what runs.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) desk: Arc<Desk>,
    _tasks: Vec<AbortOnDrop>,
}

impl Slots {
    pub(super) fn start(engine: &Arc<Engine>, states: &Arc<States>, count: usize) -> Self {
        let desk = Arc::new(Desk::new());
        let tasks =
            (0..count).map(|_| AbortOnDrop(task::spawn(slot(engine.clone(), states.clone(), desk.clone())))).collect();
        Self { desk, _tasks: tasks }
    }
}

async fn slot(engine: Arc<Engine>, states: Arc<States>, desk: Arc<Desk>) {
    while let Some(job) = desk.next().await {
        run_job(&engine, &states, &desk, job).await;
    }
}

async fn run_job(engine: &Engine, states: &Arc<States>, desk: &Desk, job: Job) {
    let Job { run, spec, deliveries, followed, cancel } = job;
    let mut rest = deliveries.into_iter();
    let mut began_before = false;
    while let Some(claimed) = rest.next() {
        let last_here = rest.len() == 0;
        let part = if last_here && !followed { RunPart::Last } else { RunPart::Continues };
        let drained = began_before && desk.draining.load(Ordering::Acquire);
        let ending = if !drained && !cancel.token.is_cancelled() && desk.is_valid(engine.clock.monotonic()) {
            run_delivery(engine, states, &spec, &claimed, part, &cancel).await
        } else {
            // Never started: it goes back as it was. Where its lease is gone, the store has done that already.
            Ending::Stopped
        };
        began_before = true;
        let goes_on = matches!(ending, Ending::Succeeded | Ending::Committed | Ending::FoundGone);
        let unstarted = if goes_on { SmallVec::new() } else { rest.by_ref().collect() };
        let outcome = Outcome { claimed, ending };
        desk.report(Report { run, outcome, unstarted, last: last_here || !goes_on });
    }
}
