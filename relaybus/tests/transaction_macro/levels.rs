//! The in-memory store as if it had isolation levels: it notes what it was asked for, and commits fail when they are told to.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaybus::memory::{Memory, MemorySession, MemoryTransaction};
use relaybus::store::{
    AppendBatch, Appended, Capabilities, CommitError, Completed, DeliveryId, DeliveryPage, DeliveryQuery, HandleOf,
    HandlerBacklog, IsolationLevel, Lease, LeaseState, PurgeRequest, Purged, Requeued, SessionRequest, Settled,
    Settlement, Statistics, StoreTransaction, TransactionOptions, Turn, TurnRequest, TypeRef, WakeUp, WatchGuard,
};
use relaybus::{Error, EventStore, MemoryStore, Result, Timestamp};

/// What the store was asked to begin: the level and the budget of each transaction.
type Begun = Vec<(Option<IsolationLevel>, Option<Duration>)>;

#[derive(Clone, Default)]
pub(crate) struct Levels {
    inner: MemoryStore,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    begun: Mutex<Begun>,
    /// How the next commits end.
    refusals: Mutex<Vec<Refusal>>,
}

/// How a commit fails.
#[derive(Clone, Copy)]
pub(crate) enum Refusal {
    /// The database could not serialize the transaction.
    Serialization,
    /// As that, and it is not known whether it committed.
    InDoubt,
}

impl Levels {
    pub(crate) fn begun(&self) -> Begun {
        self.shared.begun.lock().unwrap().clone()
    }

    /// The next commit fails.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.shared.refusals.lock().unwrap().push(refusal);
    }
}

/// A transaction; it lends the one inside.
pub(crate) struct LevelTransaction {
    inner: MemoryTransaction,
    shared: Arc<Shared>,
}

impl HandleOf<Memory> for LevelTransaction {
    fn handle(&mut self) -> &mut MemoryTransaction {
        &mut self.inner
    }
}

impl StoreTransaction for LevelTransaction {
    async fn commit(self) -> std::result::Result<(), CommitError> {
        let refusal = self.shared.refusals.lock().unwrap().pop();
        let error = Error::SerializationFailure { source: None };
        match refusal {
            None => self.inner.commit().await,
            Some(Refusal::Serialization) => Err(CommitError::RolledBack(error)),
            Some(Refusal::InDoubt) => Err(CommitError::InDoubt(error)),
        }
    }

    async fn rollback(self) -> Result<()> {
        self.inner.rollback().await
    }

    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)> {
        if wanted == TypeId::of::<Self>() { Some(self) } else { self.inner.lend(wanted) }
    }
}

impl EventStore for Levels {
    type Family = Memory;
    type Transaction = LevelTransaction;
    type Session = MemorySession;

    fn name(&self) -> &'static str {
        "levels"
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.isolation_levels = true;
        capabilities
    }

    fn handles(&self) -> &'static [TypeRef] {
        self.inner.handles()
    }

    async fn setup(&self) -> Result<()> {
        self.inner.setup().await
    }

    async fn verify(&self) -> Result<()> {
        self.inner.verify().await
    }

    async fn begin(&self, options: &TransactionOptions) -> Result<LevelTransaction> {
        self.shared.begun.lock().unwrap().push((options.isolation, options.budget));
        let inner = self.inner.begin(&TransactionOptions::default()).await?;
        Ok(LevelTransaction { inner, shared: self.shared.clone() })
    }

    async fn append<'c>(&'c self, handle: &'c mut MemoryTransaction, batch: &AppendBatch) -> Result<Appended> {
        self.inner.append(handle, batch).await
    }

    async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        self.inner.append_alone(batch).await
    }

    async fn open_session(&self, request: &SessionRequest) -> Result<MemorySession> {
        self.inner.open_session(request).await
    }

    async fn turn(&self, session: &mut MemorySession, request: &TurnRequest<'_>) -> Result<Turn> {
        self.inner.turn(session, request).await
    }

    async fn settle(
        &self,
        session: &mut MemorySession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        self.inner.settle(session, settlements, now).await
    }

    async fn complete_in(
        &self,
        transaction: &mut LevelTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        self.inner.complete_in(&mut transaction.inner, completed, now).await
    }

    async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        self.inner.inspect(lease).await
    }

    async fn close_session(&self, session: MemorySession, now: Timestamp) -> Result<()> {
        self.inner.close_session(session, now).await
    }

    async fn list_deliveries(&self, query: &DeliveryQuery, now: Timestamp) -> Result<DeliveryPage> {
        self.inner.list_deliveries(query, now).await
    }

    async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        self.inner.requeue(ids, now).await
    }

    async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        self.inner.statistics(now).await
    }

    async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        self.inner.backlog().await
    }

    async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        self.inner.purge(request).await
    }

    async fn watch(&self, _: WakeUp) -> Result<Option<WatchGuard>> {
        // Without reports of commits only the bus itself wakes the dispatcher.
        Ok(None)
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }

    fn force_close(&self) {
        self.inner.force_close();
    }
}
