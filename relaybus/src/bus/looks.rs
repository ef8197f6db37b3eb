//! Looking again after a commit that the bus cannot see.
//!
//! A publish in a caller's own transaction commits at a time only the caller knows. Unless the store reports commits, the
//! dispatcher is woken 25, 100 and 250 ms after the latest publish; what commits later is found by the poll.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::engine::Engine;
use crate::store::EventStore;
use crate::task;

/// When to look, counted from the latest publish.
const LOOKS: [Duration; 3] = [Duration::from_millis(25), Duration::from_millis(100), Duration::from_millis(250)];

/// The looks that are still to come, of one series at a time.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    series: Mutex<Option<Series>>,
    /// The next look has come closer.
    sooner: Notify,
}

/// Monotonic times.
#[derive(Debug)]
struct Series {
    latest_publish: Duration,
    next: Duration,
}

impl Looks {
    fn lock(&self) -> MutexGuard<'_, Option<Series>> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts from a publish at `now`, and answers whether nobody looks yet.
    ///
    /// A look that is sooner than the publish's own first stays, so that publishing all the time puts none off.
    fn published(&self, now: Duration) -> bool {
        let first = now + LOOKS[0];
        let mut series = self.lock();
        let Some(running) = &mut *series else {
            *series = Some(Series { latest_publish: now, next: first });
            return true;
        };
        running.latest_publish = now;
        if first < running.next {
            running.next = first;
            self.sooner.notify_one();
        }
        false
    }

    fn next(&self) -> Option<Duration> {
        self.lock().as_ref().map(|series| series.next)
    }

    fn looked(&self, at: Duration) {
        let mut series = self.lock();
        let next = series
            .as_ref()
            .and_then(|running| LOOKS.iter().map(|look| running.latest_publish + *look).find(|next| *next > at));
        match (&mut *series, next) {
            (Some(running), Some(next)) => running.next = next,
            _ => *series = None,
        }
    }
}

impl Engine {
    /// Looks for due deliveries a few times, because what was just published commits at a time the bus cannot see.
    pub(crate) fn look_after_commit(self: &Arc<Self>) {
        let reported = self.store_reports_commits.get_or_init(|| self.store.capabilities().reports_commits);
        if *reported || !self.options.dispatcher.enabled || !self.lifecycle.is_running() {
            return;
        }
        if self.looks.published(self.clock.monotonic()) {
            drop(task::spawn(look(self.clone())));
        }
    }
}

async fn look(engine: Arc<Engine>) {
    while let Some(next) = engine.looks.next() {
        let wait = next.saturating_sub(engine.clock.monotonic());
        if !wait.is_zero() {
            tokio::select! {
                biased;
                () = engine.looks.sooner.notified() => {}
                () = engine.clock.sleep(wait) => {}
            }
            continue;
        }
        engine.wake.wake();
        engine.looks.looked(next);
    }
}
