//! A worker: dispatches until it is asked to end, or killed.

use std::sync::{Arc, Mutex};

use relaybus::observe::HandlerFinished;
use relaybus::store::DeliveryId;
use relaybus::{BoxError, DispatcherOptions, Error, ErrorInfo, Interest, Observer, Stage};
use tokio::signal::unix::{SignalKind, signal};

use super::handlers::World;
use super::journal::{Journal, What};
use super::{Base, LEASE, POLL, Process, bus, started};

/// Writes what the handlers cannot see into the journal.
struct Reporter {
    journal: Journal,
    process: u32,
}

impl Observer for Reporter {
    fn interest(&self) -> Interest {
        Interest::HANDLER | Interest::DELIVERY | Interest::FAILURE
    }

    fn handler_finished(&self, report: &HandlerFinished<'_>) {
        let Some(error) = report.error else { return };
        let (handler, event) = (report.handler.as_str().to_owned(), report.event_id.as_str().to_owned());
        self.journal.enter(self.process, &What::Failed { handler, event, code: error.name().to_owned() });
    }

    fn lease_lost(&self, delivery: &DeliveryId) {
        let (handler, event) = (delivery.handler().as_str().to_owned(), delivery.event_id().as_str().to_owned());
        self.journal.enter(self.process, &What::Lost { handler, event });
    }

    fn failure(&self, stage: Stage, error: &Error) {
        let message = ErrorInfo::of(error).message;
        self.journal.enter(self.process, &What::Error { stage: stage.as_str().to_owned(), message });
    }
}

/// Works until it is asked to end.
pub(super) async fn work<B: Base>(me: &Process) -> Result<(), BoxError> {
    let mut asked = signal(SignalKind::terminate())?;
    let mut chance = me.chance();
    let path = me.folder.join("journal");
    let concurrency = chance.usize(2..16);
    let window = if chance.bool() { "2ms" } else { "0ms" };
    let options = DispatcherOptions::default()
        .concurrency(concurrency)
        .batch_size(chance.usize(1..=concurrency))
        .run_length(chance.usize(1..20))
        .completion_window(window)
        .completion_batch(chance.usize(1..200))
        .shutdown_timeout("8s")
        .lease(LEASE)
        .poll_interval(POLL);
    let bus = started(async || {
        let bus = bus::<B>(&me.folder, me.seed)
            .await?
            .dispatcher(options.clone())
            .observer(Arc::new(Reporter { journal: Journal::open(&path)?, process: me.number }))
            .provide(World { journal: Journal::open(&path)?, process: me.number, chance: Mutex::new(chance.clone()) });
        Ok(bus.build()?)
    })
    .await?;
    asked.recv().await;
    let stopped = bus.stop().await?;
    if stopped.graceful { Ok(()) } else { Err(format!("the stop was not graceful: {stopped:?}").into()) }
}
