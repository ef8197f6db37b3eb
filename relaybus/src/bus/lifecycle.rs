//! Starting and stopping a bus.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::background;
use super::engine::Engine;
use super::supervise::Dispatcher;
use crate::dispatch::Phase;
use crate::error::{Error, ErrorInfo, Result};
use crate::observe::Stage;
use crate::store::{EventStore, WatchGuard};
use crate::task::{self, AbortOnDrop};
use crate::transport::Inbox;

/// Where a bus is in its life.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    state: Mutex<State>,
    /// Subscriptions, in their order, that earlier starts have made: a start that is repeated makes the others.
    subscribed: AtomicUsize,
    stopped: Notify,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Starting,
    Running(Running),
    Stopping,
    Stopped(StopResult),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Running(_) => "running",
            Self::Stopping => "stopping",
            Self::Stopped(_) => "stopped",
        }
    }
}

/// What a running bus keeps alive.
struct Running {
    dispatcher: Option<Dispatcher>,
    background: Vec<AbortOnDrop>,
    watch: Option<WatchGuard>,
}

/// How a stop went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopResult {
    /// False when the deadline passed before everything had ended.
    pub graceful: bool,
    /// Deliveries that were still in flight at the deadline. Their lease ends by itself and another process runs them again,
    /// which costs them an attempt. Those that were handed back in time are not counted: they cost nothing and are due at
    /// once.
    pub abandoned_deliveries: usize,
    /// How long it took.
    pub duration: Duration,
}

/// What a stop finds.
enum StopOf {
    Running(Running),
    Stopped(StopResult),
    /// Another stop is under way.
    Stopping,
}

/// Running handlers get four fifths of the stop's time before they are cancelled; one in this many is left.
const SHARE_AFTER_HANDLERS: u32 = 5;

impl Lifecycle {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(*self.lock(), State::Running(_))
    }

    /// Whether it is running, and so is its dispatcher where it has one: only a panic ends that before a stop.
    pub(crate) fn is_working(&self) -> bool {
        self.is_running() && self.dispatcher_fault().is_none()
    }

    /// Why the dispatcher of a running bus does not work.
    pub(crate) fn dispatcher_fault(&self) -> Option<ErrorInfo> {
        match &*self.lock() {
            State::Running(Running { dispatcher, .. }) => dispatcher.as_ref().and_then(Dispatcher::fault),
            _ => None,
        }
    }

    fn begin_start(&self) -> Result<()> {
        let mut state = self.lock();
        match &*state {
            State::Idle => {
                *state = State::Starting;
                Ok(())
            }
            other => {
                let todo = if matches!(other, State::Stopped(_)) { "build another one" } else { "start it once" };
                Err(Error::lifecycle(format!("the bus cannot be started: it is {}, {todo}", other.name())))
            }
        }
    }

    fn finish_start(&self, running: Result<Running>) -> Result<()> {
        let mut state = self.lock();
        match running {
            Ok(running) => {
                *state = State::Running(running);
                Ok(())
            }
            // A failed start leaves the bus idle: the cause can be removed and the start repeated.
            Err(error) => {
                *state = State::Idle;
                Err(error)
            }
        }
    }

    fn begin_stop(&self) -> Result<StopOf> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Stopping) {
            State::Running(running) => Ok(StopOf::Running(running)),
            State::Idle => Ok(StopOf::Running(Running { dispatcher: None, background: Vec::new(), watch: None })),
            State::Stopping => Ok(StopOf::Stopping),
            State::Stopped(result) => {
                *state = State::Stopped(result);
                Ok(StopOf::Stopped(result))
            }
            State::Starting => {
                *state = State::Starting;
                Err(Error::lifecycle("the bus cannot be stopped: it is starting, wait for that to end"))
            }
        }
    }

    fn finish_stop(&self, result: StopResult) {
        *self.lock() = State::Stopped(result);
        self.stopped.notify_waiters();
    }
}

/// Puts the state back to idle when a start is dropped half-way.
struct StartGuard<'a>(&'a Lifecycle);

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(*state, State::Starting) {
            *state = State::Idle;
        }
    }
}

/// Ends a stop that panics or whose runtime goes, so that nobody waits for it for ever.
struct StopGuard<'a> {
    engine: &'a Arc<Engine>,
    began: Option<Duration>,
}

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        let Some(began) = self.began else { return };
        let duration = self.engine.clock.monotonic().saturating_sub(began);
        let result = StopResult { graceful: false, abandoned_deliveries: 0, duration };
        self.engine.lifecycle.finish_stop(result);
    }
}

impl Engine {
    pub(crate) async fn start(self: &Arc<Self>) -> Result<()> {
        self.lifecycle.begin_start()?;
        let _guard = StartGuard(&self.lifecycle);
        let running = self.start_parts().await;
        self.lifecycle.finish_start(running)
    }

    async fn start_parts(self: &Arc<Self>) -> Result<Running> {
        self.declarations.check(&self.handlers)?;
        crate::task::check_runtime()?;
        if self.options.setup_store {
            self.store.setup().await?;
        } else {
            self.store.verify().await?;
        }
        self.measure_offset().await?;
        background::log_handlers(self);
        let capabilities = self.store.capabilities();
        let _ = self.store_reports_commits.set(capabilities.reports_commits);
        background::warn_about_unknown_handlers(self).await?;
        let subscribed = self.lifecycle.subscribed.load(Ordering::SeqCst);
        for subscription in self.options.subscriptions.iter().skip(subscribed) {
            if let Some(transport) = self.transports.get(&subscription.transport) {
                transport.subscribe(&subscription.destinations, Inbox::new(self.clone(), transport.name())).await?;
            }
            self.lifecycle.subscribed.fetch_add(1, Ordering::SeqCst);
        }
        let mut watch = None;
        let mut dispatcher = None;
        if self.options.dispatcher.enabled && !self.handlers.by_id.is_empty() {
            let wake = self.wake.clone();
            watch = match self.store.watch(Arc::new(move || wake.wake())).await {
                Ok(watch) => watch,
                // Without wake-ups the poll finds everything.
                Err(error) => {
                    self.observers.failure(Stage::Watch, &error);
                    None
                }
            };
            dispatcher = Some(Dispatcher::start(self));
        }
        Ok(Running { dispatcher, background: background::start(self), watch })
    }

    pub(crate) async fn stop(self: &Arc<Self>, timeout: Option<Duration>) -> Result<StopResult> {
        let running = loop {
            // Asked for before the state is looked at, so that an end between the two is not missed.
            let stopped = self.lifecycle.stopped.notified();
            match self.lifecycle.begin_stop()? {
                StopOf::Running(running) => break running,
                StopOf::Stopped(result) => return Ok(result),
                StopOf::Stopping => stopped.await,
            }
        };
        let timeout = timeout.unwrap_or(self.options.dispatcher.shutdown_timeout);
        // The stop is a task of its own: dropping the caller's future does not leave it half-way.
        let stopping = task::spawn(stop_parts(self.clone(), running, timeout));
        stopping.await.map_err(|error| Error::lifecycle(format!("the stop did not end: {error}")))
    }
}

async fn stop_parts(engine: Arc<Engine>, running: Running, timeout: Duration) -> StopResult {
    let began = engine.clock.monotonic();
    let deadline = began.saturating_add(timeout);
    let mut unfinished = StopGuard { engine: &engine, began: Some(began) };
    let Running { dispatcher, background, watch } = running;
    drop(background);
    drop(watch);
    let mut abandoned = 0;
    let mut graceful = true;
    if let Some(mut dispatcher) = dispatcher {
        let _ = dispatcher.phase.send(Phase::Draining);
        let cancel_at = began.saturating_add(timeout - timeout / SHARE_AFTER_HANDLERS);
        if !ended_by(&engine, &mut dispatcher.task, cancel_at).await {
            let _ = dispatcher.phase.send(Phase::Cancelling);
            dispatcher.stop_now();
            if !ended_by(&engine, &mut dispatcher.task, deadline).await {
                graceful = false;
                abandoned = *dispatcher.in_flight.borrow();
                dispatcher.task.abort();
            }
        }
    }
    let mut closing = task::spawn(close_all(engine.clone()));
    if !ended_by(&engine, &mut closing, deadline).await {
        graceful = false;
        closing.abort();
        for transport in engine.transports.values() {
            transport.force_close();
        }
        engine.store.force_close();
    }
    let duration = engine.clock.monotonic().saturating_sub(began);
    if !graceful {
        tracing::warn!(abandoned, timeout_ms = timeout.as_millis(), "shutdown deadline passed, forced close");
    }
    let result = StopResult { graceful, abandoned_deliveries: abandoned, duration };
    unfinished.began = None;
    engine.lifecycle.finish_stop(result);
    result
}

async fn ended_by(engine: &Engine, task: &mut JoinHandle<()>, deadline: Duration) -> bool {
    let left = deadline.saturating_sub(engine.clock.monotonic());
    tokio::select! {
        biased;
        _ = task => true,
        () = engine.clock.sleep(left) => false,
    }
}

async fn close_all(engine: Arc<Engine>) {
    for transport in engine.transports.values() {
        if let Err(error) = transport.close().await {
            engine.observers.failure(Stage::Stop, &error);
        }
    }
    if let Err(error) = engine.store.close().await {
        engine.observers.failure(Stage::Stop, &error);
    }
}
