//! What a running bus does beside dispatching: cleaning up, reading the backlog, and looking for orphaned handlers.

use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::supervise;
use crate::error::Result;
use crate::handler_id::HandlerId;
use crate::observe::{Interest, Stage};
use crate::store::{EventStore, PurgeRequest, Purged};
use crate::task::AbortOnDrop;

use super::options::DEFAULT_PURGE_BATCH;

pub(super) fn start(engine: &Arc<Engine>) -> Vec<AbortOnDrop> {
    let mut tasks = Vec::new();
    let retention = &engine.options.retention;
    if retention.completed.is_some() || retention.dead.is_some() {
        tasks.push(supervise::spawn(engine, "clean-up", Stage::Purge, purge_regularly));
    }
    tasks.push(supervise::spawn(engine, "look at the store's clock", Stage::Watch, keep_to_the_stores_clock));
    if let Some(interval) = engine.options.backlog_interval {
        let read = move |engine| read_backlog_regularly(engine, interval);
        tasks.push(supervise::spawn(engine, "reading of the backlog", Stage::Backlog, read));
    }
    tasks
}

async fn purge_regularly(engine: Arc<Engine>) {
    loop {
        engine.clock.sleep(engine.options.retention.interval).await;
        if let Err(error) = engine.purge_expired().await {
            engine.observers.failure(Stage::Purge, &error);
        }
    }
}

/// How often the offset to the store's clock is measured again.
const OFFSET_INTERVAL: Duration = Duration::from_secs(60);

async fn keep_to_the_stores_clock(engine: Arc<Engine>) {
    loop {
        match engine.measure_offset().await {
            // A store without a clock of its own is not asked again.
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => engine.observers.failure(Stage::Watch, &error),
        }
        engine.clock.sleep(OFFSET_INTERVAL).await;
    }
}

/// Tells the policies that are in force: what a handler gets is put together from the bus's and its own.
pub(super) fn log_handlers(engine: &Engine) {
    for handler in engine.handlers.list() {
        tracing::info!(
            handler = %handler.id,
            event_type = %handler.event_type,
            transactional = handler.transactional,
            attempts = ?handler.retry.attempts,
            initial_delay = ?handler.retry.initial_delay,
            max_delay = ?handler.retry.max_delay,
            timeout = ?handler.timeout,
            concurrency = ?handler.concurrency,
            "handler registered"
        );
    }
}

async fn read_backlog_regularly(engine: Arc<Engine>, interval: Duration) {
    loop {
        engine.clock.sleep(interval).await;
        let now = engine.now();
        match engine.store.statistics(now).await {
            Ok(statistics) => {
                let lag = statistics.lag(now);
                engine.observers.call(Interest::BACKLOG, |observer| observer.backlog(&statistics, lag));
            }
            Err(error) => engine.observers.failure(Stage::Backlog, &error),
        }
    }
}

/// Deliveries of handlers that this process does not have are left alone for a process that has them. When nobody has, an
/// operator must hear of it.
pub(super) async fn warn_about_unknown_handlers(engine: &Engine) -> Result<()> {
    for backlog in engine.store.backlog().await? {
        if !engine.handlers.by_id.contains_key(&backlog.handler) {
            tracing::warn!(
                handler = %backlog.handler,
                deliveries = backlog.unfinished,
                perhaps_now = earlier_id_of(&backlog.handler, engine.handlers.by_id.keys()).map(HandlerId::as_str),
                "the store has deliveries of a handler that this process does not have: they wait for a process that has it"
            );
        }
    }
    Ok(())
}

/// The handler that may have had this id before: one with the same last part, as after a move to another module.
fn earlier_id_of<'a>(unknown: &HandlerId, known: impl IntoIterator<Item = &'a HandlerId>) -> Option<&'a HandlerId> {
    let last = |id: &HandlerId| id.as_str().rsplit(['.', ':']).next().map(str::to_ascii_lowercase);
    known.into_iter().find(|id| last(id) == last(unknown))
}

impl Engine {
    /// Deletes what is past its retention, in small store calls.
    pub(crate) async fn purge_expired(&self) -> Result<Purged> {
        let now = self.now();
        let mut request = PurgeRequest::new(DEFAULT_PURGE_BATCH);
        request.completed_before = self.options.retention.completed.map(|after| now.before(after));
        request.dead_before = self.options.retention.dead.map(|after| now.before(after));
        let mut total = Purged::default();
        loop {
            let purged = self.store.purge(&request).await?;
            total.events += purged.events;
            total.dead += purged.dead;
            total.records += purged.records;
            if !purged.more {
                return Ok(total);
            }
        }
    }
}
