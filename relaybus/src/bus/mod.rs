//! The bus: what applications hold.
//!
//! [`RelayBus<S>`] is a cheap clone over one engine. Typed by its store it takes the store's own transaction handles; as plain
//! `RelayBus` it is erased, for libraries and registered handlers that cannot name the store.

mod background;
mod build;
mod builder;
mod engine;
mod handlers;
mod health;
mod isolated;
mod lifecycle;
mod looks;
mod options;
mod receive;
mod scope;
mod subscribe;
mod supervise;
mod transaction;
mod transports;

pub use builder::RelayBusBuilder;
pub(crate) use engine::Engine;
pub use handlers::HandlerInfo;
pub(crate) use handlers::{Given, HandlerSpec, Handlers, Kind};
pub use health::{Health, HealthStatus};
pub(crate) use isolated::{Announcement, Isolated};
pub use lifecycle::StopResult;
pub use options::*;
pub use scope::TransactionScope;
#[doc(hidden)]
pub use scope::{rerun_transaction, run_transaction, run_transaction_at};
pub use subscribe::Subscribe;
pub use transaction::{BusTransaction, IsSerializationFailure, Work};

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::catalog::{Catalog, CatalogView};
use crate::dispatch::run_batches;
use crate::envelope::{Envelope, RawPayload};
use crate::error::Result;
use crate::event::Event;
use crate::publish::{Draft, EventBatch, Publish, PublishAll};
use crate::store::{
    AnyStore, DeliveryId, DeliveryPage, DeliveryQuery, EventStore, HandleOf, Purged, Requeued, Statistics,
};
use crate::transport::ReceiveOutcome;

/// A transactional outbox and event bus over a store.
///
/// Cloning is cheap and shares everything.
pub struct RelayBus<S: EventStore = AnyStore> {
    engine: Arc<Engine>,
    store: Arc<S>,
}

impl<S: EventStore> Clone for RelayBus<S> {
    fn clone(&self) -> Self {
        Self { engine: self.engine.clone(), store: self.store.clone() }
    }
}

impl<S: EventStore> std::fmt::Debug for RelayBus<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayBus").field("store", &self.store.name()).finish_non_exhaustive()
    }
}

/// Most batches of a `drain`.
const MAX_DRAIN_BATCHES: usize = 10_000;

impl<S: EventStore> RelayBus<S> {
    /// Builds a bus over `store`.
    ///
    /// ```
    /// # async fn example() -> relaybus::Result<()> {
    /// use relaybus::{RelayBus, memory::MemoryStore};
    /// let bus = RelayBus::builder(MemoryStore::new()).source("orders").build()?;
    /// bus.start().await?;
    /// bus.stop().await?;
    /// # Ok(()) }
    /// ```
    pub fn builder(store: S) -> RelayBusBuilder<S> {
        RelayBusBuilder::new(store)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// This bus without the type of its store.
    #[must_use]
    pub fn any(&self) -> RelayBus {
        RelayBus { engine: self.engine.clone(), store: Arc::new(self.engine.store.clone()) }
    }

    /// A view of this bus that publishes the events of the catalog `C` and no others.
    #[must_use]
    pub fn for_catalog<C: Catalog>(&self) -> CatalogView<C, S> {
        CatalogView::new(self.clone())
    }

    /// Writes an event, with one delivery for each of its handlers and routes, in the transaction of `tx`.
    ///
    /// The transaction is the caller's to open. A connection without one is refused with `RELAYBUS_TRANSACTION_REQUIRED`:
    /// a transaction that sqlx began is known to be open, for one that your own `BEGIN` opened the database is asked. Other
    /// clients (PostgreSQL's `PgClient`) are not asked: without a transaction they commit the event by itself.
    ///
    /// Returns a builder; nothing happens until it is awaited. When that future is dropped midway, the event may or may not
    /// be in the transaction: roll back.
    pub fn publish<'a, H, E>(&'a self, tx: &'a mut H, event: E) -> Publish<'a, S>
    where
        H: HandleOf<S::Family> + ?Sized,
        E: Event,
    {
        Publish::in_transaction(&self.engine, &self.store, tx, Draft::of(&event))
    }

    /// Writes several events in the transaction of `tx`, with one call to the store.
    pub fn publish_all<'a, H>(&'a self, tx: &'a mut H, events: impl Into<EventBatch>) -> PublishAll<'a, S>
    where
        H: HandleOf<S::Family> + ?Sized,
    {
        PublishAll::in_transaction(&self.engine, &self.store, tx, events.into())
    }

    /// Writes an event in a transaction of its own: durable, but not atomic with anything else.
    ///
    /// Not for inside a transaction: it would be kept when that one rolls back, and where one transaction at a time can write
    /// (SQLite) it would wait for it, and is refused with `RELAYBUS_TRANSACTION_REQUIRED`. Returns a builder; nothing happens
    /// until it is awaited. When that future is dropped midway, the event may be stored all the same.
    pub fn publish_detached<E: Event>(&self, event: E) -> Publish<'_, S> {
        Publish::alone(&self.engine, &self.store, Draft::of(&event))
    }

    /// Writes several events in a transaction of their own.
    pub fn publish_all_detached(&self, events: impl Into<EventBatch>) -> PublishAll<'_, S> {
        PublishAll::alone(&self.engine, &self.store, events.into())
    }

    /// Stores an event that came from elsewhere, once by its id, for the local handlers of its type.
    ///
    /// # Errors
    /// `RELAYBUS_INVALID_ENVELOPE` when it can never be stored; else the store's error of the moment.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the event stored; receiving it again is a duplicate.
    pub fn receive(&self, event: Envelope<RawPayload>) -> BoxFuture<'_, Result<ReceiveOutcome>> {
        Box::pin(self.engine.receive(event, None))
    }

    /// Checks the declared catalogs and modules, sets up the store, subscribes to the transports and begins to dispatch.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` listing every event without the handler or route it needs, before any I/O. The store's or a
    /// transport's; the bus is idle again and can be started once more. `RELAYBUS_LIFECYCLE` when it is not idle.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the bus idle.
    pub fn start(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.engine.start())
    }

    /// Stops within the shutdown timeout: claims nothing more, lets handlers end, hands back what is left, closes transports and
    /// store. Stopping again returns the same result; while a stop is under way it waits for that one.
    ///
    /// # Errors
    /// `RELAYBUS_LIFECYCLE` while the bus starts.
    ///
    /// # Cancel safety
    /// The stop goes on when the future is dropped.
    pub fn stop(&self) -> BoxFuture<'_, Result<StopResult>> {
        Box::pin(self.engine.stop(None))
    }

    /// As [`RelayBus::stop`], within `timeout`.
    ///
    /// # Errors
    /// As [`RelayBus::stop`].
    ///
    /// # Cancel safety
    /// As [`RelayBus::stop`].
    pub fn stop_within(&self, timeout: Duration) -> BoxFuture<'_, Result<StopResult>> {
        Box::pin(self.engine.stop(Some(timeout)))
    }

    /// Looks for due deliveries now. Call it after a commit that the bus cannot see. Harmless when nothing runs.
    pub fn wake(&self) {
        self.engine.wake.wake();
    }

    /// Claims one batch and runs it to its end; returns the attempts that ended. For tests and processes without a dispatcher.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Dropping the future drops the running handlers; their deliveries run again when the lease has ended.
    pub fn run_once(&self) -> BoxFuture<'_, Result<usize>> {
        Box::pin(async { run_batches(&self.engine, &self.engine.states(), 1, false).await })
    }

    /// Runs batches until nothing is due; returns the attempts that ended.
    ///
    /// # Errors
    /// The store's; `RELAYBUS_DRAIN_INCOMPLETE` when something is still due after 10,000 batches.
    ///
    /// # Cancel safety
    /// As [`RelayBus::run_once`].
    pub fn drain(&self) -> BoxFuture<'_, Result<usize>> {
        Box::pin(async { run_batches(&self.engine, &self.engine.states(), MAX_DRAIN_BATCHES, true).await })
    }

    /// The handlers and routes, sorted by id; a route once for each of its event types.
    #[must_use]
    pub fn handlers(&self) -> Vec<HandlerInfo> {
        self.engine.handlers.list()
    }

    /// Deliveries, oldest event first, a page at a time.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Reads only.
    pub fn list_deliveries<'a>(&'a self, query: &'a DeliveryQuery) -> BoxFuture<'a, Result<DeliveryPage>> {
        Box::pin(async move { self.engine.store.list_deliveries(query, self.engine.now()).await })
    }

    /// Makes dead deliveries pending again, with all their attempts. One answer for each; only dead ones change.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Dropping the future may leave some of them requeued; asking again answers which.
    pub fn requeue<'a>(&'a self, ids: &'a [DeliveryId]) -> BoxFuture<'a, Result<Vec<Requeued>>> {
        Box::pin(async move {
            let answers = self.engine.store.requeue(ids, self.engine.now()).await?;
            self.engine.wake.wake();
            Ok(answers)
        })
    }

    /// How many deliveries there are, by status.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Reads only.
    pub fn statistics(&self) -> BoxFuture<'_, Result<Statistics>> {
        Box::pin(async { self.engine.store.statistics(self.engine.now()).await })
    }

    /// Deletes what is past its retention, as the bus does on its own schedule.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the rest for the next time.
    pub fn purge_expired(&self) -> BoxFuture<'_, Result<Purged>> {
        Box::pin(self.engine.purge_expired())
    }
}
