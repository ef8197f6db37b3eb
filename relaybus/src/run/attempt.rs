//! One attempt of one delivery.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::guarded::{Interrupted, guarded, guarded_sync, panicked};
use super::middleware::{HandlerCall, call};
use super::outcome::{Ending, Failure, exhausted};
use super::transactional::run_in_transaction;
use crate::bus::{Engine, HandlerSpec, Kind};
use crate::context::HandlerContext;
use crate::error::{Error, Result};
use crate::observe::{HandlerFinished, HandlerStarted, Interest, TransportSent};
use crate::registry::States;
use crate::store::{Claimed, RunPart};
use crate::trace::TraceSpan;
use crate::transport::Transport;

/// What may cancel running handlers, shared by all of one session.
pub(crate) type Cancel = Arc<CancelSource>;

#[derive(Debug, Default)]
pub(crate) struct CancelSource {
    /// Fires when the session is lost, its local deadline passes, or the bus stops.
    pub(crate) token: CancellationToken,
    /// Set before `token` fires for a stop, so that the attempt is released and not charged.
    pub(crate) stopping: AtomicBool,
}

impl CancelSource {
    /// What the cancellation means for an attempt that it met.
    fn ending(&self) -> Ending<Error> {
        if self.stopping.load(Ordering::SeqCst) { Ending::Stopped } else { Ending::LeaseLost }
    }

    fn error(&self) -> &'static Error {
        if self.stopping.load(Ordering::SeqCst) { &Error::DispatcherStopped } else { &Error::LeaseLost }
    }
}

/// Runs one delivery to its ending. The handler's future has been dropped when this returns.
pub(crate) async fn run_delivery(
    engine: &Engine,
    states: &Arc<States>,
    spec: &Arc<HandlerSpec>,
    claimed: &Claimed,
    part: RunPart,
    cancel: &Cancel,
) -> Ending {
    if let Some(error) = exhausted(spec, claimed.attempts) {
        return Ending::Failed(Failure::of(&error));
    }
    let attempt = claimed.attempts.saturating_add(1);
    let stored_at = claimed.stored_at;
    let attempts = spec.retry.attempts;
    let context =
        HandlerContext::new(claimed.lease.clone(), attempt, attempts, stored_at, cancel.clone(), states.clone());
    let started = report_start(engine, spec, claimed, attempt);
    let mut span = None;
    let work = async {
        match &spec.kind {
            Kind::Route { transport, destination } => {
                let sent = send(engine, transport.as_ref(), destination, spec, claimed, &context, cancel).await;
                ending_of(sent, &context, cancel)
            }
            Kind::Entry { .. } | Kind::Closure { .. } => {
                span = engine.tracer.as_ref().map(|tracer| tracer.process(&spec.id, attempt, &claimed.event));
                let span = span.as_deref();
                let attempt = Attempt { engine, states, spec, claimed, context: &context, cancel, span };
                if spec.transactional { run_in_transaction(&attempt, part).await } else { attempt.run().await }
            }
        }
    };
    // Panics of the handler are caught where it is polled. What is left are those of a tracer, and of what the handler's
    // future drops: they must not end the slot either.
    let ending = AssertUnwindSafe(work).catch_unwind().await;
    let ending = ending.unwrap_or_else(|panic| Ending::Failed(panicked(panic)));
    if let Some(span) = span {
        let finish = || {
            span.finish(error_of(&ending));
            Ok(())
        };
        drop(guarded_sync(finish));
    }
    report_finish(engine, spec, claimed, attempt, started, &ending);
    ending.kept()
}

/// A local handler's attempt.
pub(super) struct Attempt<'a> {
    pub(super) engine: &'a Engine,
    pub(super) states: &'a Arc<States>,
    pub(super) spec: &'a Arc<HandlerSpec>,
    pub(super) claimed: &'a Claimed,
    pub(super) context: &'a HandlerContext,
    pub(super) cancel: &'a Cancel,
    pub(super) span: Option<&'a dyn TraceSpan>,
}

impl Attempt<'_> {
    async fn run(&self) -> Ending<Error> {
        let mut slot = match guarded_sync(|| self.decode_unless_layered()) {
            Ok(slot) => slot,
            Err(error) => return Ending::Failed(error),
        };
        let future = match &self.engine.middleware {
            None => call(self.spec, slot.as_mut(), self.context, self.states, None),
            Some(_) => self.layered(Arc::new(Mutex::new(None))),
        };
        ending_of(self.guard(future).await, self.context, self.cancel)
    }

    /// With layers the handler decodes behind them.
    pub(super) fn decode_unless_layered(&self) -> Result<Box<dyn std::any::Any + Send>> {
        if self.engine.middleware.is_some() { Ok(Box::new(())) } else { self.spec.kind.decode(&self.claimed.event) }
    }

    pub(super) fn layered(&self, transaction: super::middleware::TransactionSlot) -> BoxFuture<'static, Result<()>> {
        let call = HandlerCall::new(
            self.claimed.event.clone(),
            self.context.clone(),
            self.spec.clone(),
            self.states.clone(),
            transaction,
        );
        match &self.engine.middleware {
            Some(middleware) => middleware.call(call),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }

    pub(super) async fn guard(
        &self,
        future: BoxFuture<'_, Result<()>>,
    ) -> std::result::Result<Result<()>, Interrupted> {
        guarded(future, self.spec.timeout, self.engine.clock.as_ref(), &self.cancel.token, self.span).await
    }
}

/// What a guarded run means for the delivery.
pub(super) fn ending_of(
    answer: std::result::Result<Result<()>, Interrupted>,
    context: &HandlerContext,
    cancel: &Cancel,
) -> Ending<Error> {
    match answer {
        Ok(Ok(())) => Ending::Succeeded,
        Ok(Err(error)) => Ending::Failed(error),
        Err(Interrupted::TimedOut(timeout)) => {
            context.cancel();
            Ending::Failed(Error::HandlerTimeout { timeout })
        }
        Err(Interrupted::Cancelled) => {
            context.cancel();
            cancel.ending()
        }
    }
}

async fn send(
    engine: &Engine,
    transport: &dyn Transport,
    destination: &str,
    spec: &HandlerSpec,
    claimed: &Claimed,
    context: &HandlerContext,
    cancel: &Cancel,
) -> std::result::Result<Result<()>, Interrupted> {
    let timed = engine.observers.want(Interest::SEND).then(|| engine.clock.monotonic());
    let span = engine.tracer.as_ref().map(|tracer| tracer.send(transport.name(), destination, &claimed.event));
    let traced = span.as_ref().and_then(|span| with_headers(&claimed.event, span.headers()));
    let event = traced.as_ref().unwrap_or(&claimed.event);
    let publish = match guarded_sync(|| Ok(transport.publish(destination, event))) {
        Ok(publish) => publish,
        Err(error) => Box::pin(std::future::ready(Err(error))),
    };
    let answer = guarded(publish, spec.timeout, engine.clock.as_ref(), &cancel.token, span.as_deref()).await;
    if answer.is_err() {
        context.cancel();
    }
    let timed_out;
    let error = match &answer {
        Ok(result) => result.as_ref().err(),
        Err(Interrupted::TimedOut(timeout)) => {
            timed_out = Error::HandlerTimeout { timeout: *timeout };
            Some(&timed_out)
        }
        Err(Interrupted::Cancelled) => Some(cancel.error()),
    };
    if let Some(began) = timed {
        let duration = engine.clock.monotonic().saturating_sub(began);
        let report =
            TransportSent { transport: transport.name(), system: transport.system(), destination, duration, error };
        engine.observers.call(Interest::SEND, |observer| observer.transport_sent(&report));
    }
    if let Some(span) = span {
        span.finish(error);
    }
    answer
}

/// The event with the send span's context on the wire; the stored event stays as it is.
fn with_headers(event: &crate::Envelope, headers: Vec<(String, String)>) -> Option<crate::Envelope> {
    if headers.is_empty() {
        return None;
    }
    let headers = event.headers.with(headers).ok()?;
    let mut event = event.clone();
    event.headers = headers;
    Some(event)
}

fn report_start(engine: &Engine, spec: &HandlerSpec, claimed: &Claimed, attempt: u32) -> Option<Duration> {
    if !engine.observers.want(Interest::HANDLER) {
        return None;
    }
    let now = engine.now();
    let report = HandlerStarted {
        handler: &spec.id,
        event_type: &claimed.event.event_type,
        event_id: &claimed.event.id,
        attempt,
        route: spec.kind.is_route(),
        latency: now.since(claimed.event.occurred_at),
        stored_latency: now.since(claimed.stored_at),
    };
    engine.observers.call(Interest::HANDLER, |observer| observer.handler_started(&report));
    Some(engine.clock.monotonic())
}

fn error_of(ending: &Ending<Error>) -> Option<&Error> {
    match ending {
        Ending::Succeeded | Ending::Committed | Ending::FoundGone => None,
        Ending::Failed(error) | Ending::Impossible(error) | Ending::Broken(error) => Some(error),
        Ending::Stopped => Some(&Error::DispatcherStopped),
        Ending::LeaseLost => Some(&Error::LeaseLost),
    }
}

fn report_finish(
    engine: &Engine,
    spec: &HandlerSpec,
    claimed: &Claimed,
    attempt: u32,
    started: Option<Duration>,
    ending: &Ending<Error>,
) {
    let Some(started) = started else { return };
    let report = HandlerFinished {
        handler: &spec.id,
        event_type: &claimed.event.event_type,
        event_id: &claimed.event.id,
        attempt,
        route: spec.kind.is_route(),
        duration: engine.clock.monotonic().saturating_sub(started),
        error: error_of(ending),
    };
    engine.observers.call(Interest::HANDLER, |observer| observer.handler_finished(&report));
}
