//! A gate in front of everything a simulated process does: closed for a while it is a pause, closed for good a crash.
//!
//! Timers, store calls, handlers and wake-ups of a process pass its gate, so that behind a closed gate nothing of the
//! process has an effect, and nothing of it moves.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

/// The gate of one process.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    paused: AtomicBool,
    dead: AtomicBool,
    opened: Notify,
    /// Pauses so far, and when the last one ended (microseconds of the simulation).
    pauses: AtomicU64,
    resumed_at: AtomicU64,
}

/// A process that was paused stops what it must not run any more within this time.
const GRACE: Duration = Duration::from_millis(5);

impl Gate {
    pub(crate) fn is_open(&self) -> bool {
        !self.paused.load(Ordering::SeqCst) && !self.is_dead()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    pub(crate) fn pause(&self) {
        self.paused.store(true, Ordering::SeqCst);
        self.pauses.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn resume(&self, now: Duration) {
        self.resumed_at.store(micros(now), Ordering::SeqCst);
        self.paused.store(false, Ordering::SeqCst);
        self.opened.notify_waiters();
    }

    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    /// How often it was paused.
    pub(crate) fn pauses(&self) -> u64 {
        self.pauses.load(Ordering::SeqCst)
    }

    /// Whether the process is paused, or was a moment ago and may not have noticed yet.
    pub(crate) fn is_stunned(&self, now: Duration) -> bool {
        let resumed_at = self.resumed_at.load(Ordering::SeqCst);
        self.paused.load(Ordering::SeqCst) || (resumed_at > 0 && micros(now) <= resumed_at + micros(GRACE))
    }

    /// Resolves when the gate is open; never for a dead process.
    pub(crate) async fn open(&self) {
        loop {
            let mut opened = pin!(self.opened.notified());
            opened.as_mut().enable();
            if self.is_open() {
                return;
            }
            opened.await;
        }
    }

    /// Polls `future` only while the gate is open.
    pub(crate) async fn behind<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            self.open().await;
            let polled =
                poll_fn(
                    |context| {
                        if self.is_open() { future.as_mut().poll(context).map(Some) } else { Poll::Ready(None) }
                    },
                );
            if let Some(output) = polled.await {
                return output;
            }
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
