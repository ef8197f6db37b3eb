//! The tasks of a running bus, under guard: one that panics says so and starts again, each time later.
//!
//! Handlers, hooks and decoders are caught where they are called. What panics here is a fault of the bus, of a store or of
//! a clock: it is logged as an error, reported to [`Observer::failure`](crate::observe::Observer::failure), and while the
//! dispatcher is down the bus is not ready. What the dispatcher held comes back as after a crash, when its lease has ended.
//!
//! A panic while waiting ends the task for good: then the bus stays not ready, and only a new process helps.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use crate::dispatch::{Phase, Pump};
use crate::error::{Error, ErrorInfo};
use crate::observe::Stage;
use crate::run::panic_text;
use crate::task::{self, AbortOnDrop};

/// Wait after the first panic, doubled up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Longest wait. What ran this long starts with the first wait again.
const LAST_WAIT: Duration = Duration::from_secs(60);

/// How long to wait after a panic.
struct Waits(Duration);

impl Waits {
    fn next(&mut self, ran: Duration) -> Duration {
        if ran >= LAST_WAIT {
            self.0 = FIRST_WAIT;
        }
        let wait = self.0;
        self.0 = (wait * 2).min(LAST_WAIT);
        wait
    }
}

/// What runs and panics again and again.
struct Supervised<'a> {
    engine: &'a Engine,
    /// Its name, and the stage of its failures.
    what: &'static str,
    stage: Stage,
    waits: Waits,
}

impl<'a> Supervised<'a> {
    fn new(engine: &'a Engine, what: &'static str, stage: Stage) -> Self {
        Self { engine, what, stage, waits: Waits(FIRST_WAIT) }
    }

    /// Runs `work` to its end, or to its panic: then how long to wait, and what to tell.
    async fn run(&mut self, work: impl Future<Output = ()>) -> Option<(Duration, Error)> {
        let began = self.engine.clock.monotonic();
        let panic = AssertUnwindSafe(work).catch_unwind().await.err()?;
        let wait = self.waits.next(self.engine.clock.monotonic().saturating_sub(began));
        let text = panic_text(panic);
        let error = Error::lifecycle(format!("the {} panicked (`{text}`) and starts again in {wait:?}", self.what));
        tracing::error!(wait_ms = wait.as_millis(), panic = text, "the {} of the bus panicked", self.what);
        self.engine.observers.failure(self.stage, &error);
        Some((wait, error))
    }
}

/// Starts a task of the bus that ends with its guard.
pub(super) fn spawn<F>(
    engine: &Arc<Engine>,
    what: &'static str,
    stage: Stage,
    mut work: impl FnMut(Arc<Engine>) -> F + Send + 'static,
) -> AbortOnDrop
where
    F: Future<Output = ()> + Send + 'static,
{
    let engine = engine.clone();
    AbortOnDrop(task::spawn(async move {
        let mut supervised = Supervised::new(&engine, what, stage);
        while let Some((wait, _)) = supervised.run(work(engine.clone())).await {
            engine.clock.sleep(wait).await;
        }
    }))
}

/// The dispatcher of a running bus.
pub(super) struct Dispatcher {
    pub(super) phase: watch::Sender<Phase>,
    pub(super) in_flight: watch::Receiver<usize>,
    pub(super) task: JoinHandle<()>,
    now: Arc<Mutex<Now>>,
}

/// What is known of the dispatcher at the moment.
#[derive(Default)]
struct Now {
    /// Cancels what it runs.
    stop: CancellationToken,
    /// Why it is down.
    fault: Option<ErrorInfo>,
}

impl Dispatcher {
    pub(super) fn start(engine: &Arc<Engine>) -> Self {
        let (phase, phases) = watch::channel(Phase::Running);
        let (flights, in_flight) = watch::channel(0);
        let now = Arc::default();
        let task = task::spawn(dispatch(engine.clone(), phases, flights, Arc::clone(&now)));
        Self { phase, in_flight, task, now }
    }

    /// Cancels what it runs.
    pub(super) fn stop_now(&self) {
        lock(&self.now).stop.cancel();
    }

    /// Why it does not work, when it does not.
    pub(super) fn fault(&self) -> Option<ErrorInfo> {
        let fault = lock(&self.now).fault.clone();
        let ended = || ErrorInfo::of(&Error::lifecycle("the dispatcher has ended: start another process"));
        fault.or_else(|| self.task.is_finished().then(ended))
    }
}

fn lock(now: &Mutex<Now>) -> std::sync::MutexGuard<'_, Now> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn dispatch(
    engine: Arc<Engine>,
    mut phases: watch::Receiver<Phase>,
    flights: watch::Sender<usize>,
    now: Arc<Mutex<Now>>,
) {
    let mut supervised = Supervised::new(&engine, "dispatcher", Stage::Dispatch);
    loop {
        let (phases_of_pump, flights) = (phases.clone(), flights.clone());
        let started = async {
            let pump = Pump::new(engine.clone(), &engine.states()).reporting(flights);
            *lock(&now) = Now { stop: pump.stop_now(), fault: None };
            pump.run(phases_of_pump).await;
        };
        let Some((wait, error)) = supervised.run(started).await else { return };
        lock(&now).fault = Some(ErrorInfo::of(&error));
        tokio::select! {
            biased;
            _ = phases.wait_for(|phase| *phase != Phase::Running) => return,
            () = engine.clock.sleep(wait) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_again_after_a_good_while() {
        let mut waits = Waits(FIRST_WAIT);
        let short = Duration::from_millis(5);
        let seconds: Vec<u64> = (0..8).map(|_| waits.next(short).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(waits.next(LAST_WAIT), FIRST_WAIT);
    }
}
