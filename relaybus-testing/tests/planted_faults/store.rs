//! The store with a planted fault: everything goes to an in-memory store, through one place that spoils it.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use relaybus::memory::{MemoryStore, MemoryTransaction};
use relaybus::store::{
    AppendBatch, Appended, Capabilities, CommitError, Completed, DeliveryId, DeliveryPage, DeliveryQuery, Family,
    HandleOf, HandlerBacklog, Lease, LeaseState, PurgeRequest, Purged, Requeued, Run, SessionRequest, Settled,
    Settlement, Statistics, StoreTransaction, TransactionOptions, Turn, TurnRequest, TypeRef, WakeUp, WatchGuard,
};
use relaybus::{EventStore, HandlerId, OrderingKey, Result, Timestamp};
use relaybus_testing::StoreFactory;

use super::fault::Fault;

/// Makes stores with this fault.
pub(crate) struct Mutants(pub(crate) Fault);

impl StoreFactory for Mutants {
    type Store = Mutant;

    async fn create(&self) -> Mutant {
        let inner = MemoryStore::new().completion_history(self.0 == Fault::HasNoHistory);
        Mutant { fault: self.0, inner, notes: Mutex::default(), sessions: tokio::sync::Mutex::default() }
    }

    async fn peer(&self, _store: &Mutant) -> Option<Mutant> {
        None
    }
}

/// An in-memory store with a fault.
pub(crate) struct Mutant {
    pub(crate) fault: Fault,
    pub(crate) inner: MemoryStore,
    pub(crate) notes: Mutex<Notes>,
    pub(crate) sessions: tokio::sync::Mutex<Sessions>,
}

/// What the faults need to remember.
#[derive(Default)]
pub(crate) struct Notes {
    /// The events by id, as they were stored.
    pub(crate) seen: HashSet<String>,
    /// The keys of events whose key was hidden from the store.
    pub(crate) keys: HashMap<String, OrderingKey>,
    /// The last lease of each delivery.
    pub(crate) leases: HashMap<DeliveryId, Lease>,
    /// Deliveries that show an attempt too many.
    pub(crate) overcharged: HashSet<DeliveryId>,
    /// Deliveries that stay with a session which does not know of them.
    pub(crate) forgotten: HashSet<DeliveryId>,
    /// Runs that were claimed.
    pub(crate) claimed: usize,
}

#[derive(Default)]
pub(crate) struct Sessions {
    pub(crate) opened: usize,
    pub(crate) living: HashMap<usize, Living>,
}

/// A session that was not taken over.
pub(crate) struct Living {
    pub(crate) inner: <MemoryStore as EventStore>::Session,
    pub(crate) request: SessionRequest,
    pub(crate) expires_at: Timestamp,
    pub(crate) held: Vec<Run>,
}

/// The number of a session.
pub(crate) struct MutantSession(pub(crate) usize);

/// A transaction of a [`Mutant`].
pub(crate) struct MutantTransaction {
    inner: MemoryTransaction,
    fault: Fault,
}

type Memory = <MemoryStore as EventStore>::Family;

impl HandleOf<Memory> for MutantTransaction {
    fn handle(&mut self) -> <Memory as Family>::Handle<'_> {
        &mut self.inner
    }
}

impl StoreTransaction for MutantTransaction {
    async fn commit(self) -> std::result::Result<(), CommitError> {
        match self.fault {
            Fault::LosesCommits => self.inner.rollback().await.map_err(CommitError::RolledBack),
            _ => self.inner.commit().await,
        }
    }

    async fn rollback(self) -> Result<()> {
        match self.fault {
            Fault::CommitsOnRollback => Ok(self.inner.commit().await?),
            _ => self.inner.rollback().await,
        }
    }

    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)> {
        self.inner.lend(wanted)
    }
}

impl Mutant {
    pub(crate) fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    pub(crate) fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl EventStore for Mutant {
    type Family = Memory;
    type Transaction = MutantTransaction;
    type Session = MutantSession;

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
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

    async fn begin(&self, options: &TransactionOptions) -> Result<MutantTransaction> {
        let options = if self.is(Fault::IgnoresIsolation) { TransactionOptions::default() } else { options.clone() };
        Ok(MutantTransaction { inner: self.inner.begin(&options).await?, fault: self.fault })
    }

    async fn append<'c>(&'c self, handle: &'c mut MemoryTransaction, batch: &AppendBatch) -> Result<Appended> {
        if self.is(Fault::StoresOutsideTheTransaction) {
            return self.inner.append_alone(batch).await;
        }
        self.inner.append(handle, &self.spoiled(batch)).await
    }

    async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        self.append_spoiled(batch).await
    }

    async fn open_session(&self, request: &SessionRequest) -> Result<MutantSession> {
        let mut sessions = self.sessions.lock().await;
        let inner = self.inner.open_session(request).await?;
        let expires_at = request.now.after(request.lease);
        sessions.opened += 1;
        let number = sessions.opened;
        sessions.living.insert(number, Living { inner, request: request.clone(), expires_at, held: Vec::new() });
        Ok(MutantSession(number))
    }

    async fn turn(&self, session: &mut MutantSession, request: &TurnRequest<'_>) -> Result<Turn> {
        self.turn_spoiled(session.0, request).await
    }

    async fn settle(
        &self,
        session: &mut MutantSession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        self.settle_spoiled(session.0, settlements, now).await
    }

    async fn complete_in(
        &self,
        transaction: &mut MutantTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        match self.fault {
            Fault::CompletesOutsideTheTransaction => {
                let mut own = self.inner.begin(&TransactionOptions::default()).await?;
                let settled = self.inner.complete_in(&mut own, completed, now).await?;
                own.commit().await?;
                Ok(settled)
            }
            Fault::DoesNotFenceTransactions => {
                self.inner.complete_in(&mut transaction.inner, completed, now).await?;
                Ok(Settled::Applied)
            }
            _ => self.inner.complete_in(&mut transaction.inner, completed, now).await,
        }
    }

    async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        if self.is(Fault::SaysHeld) {
            return Ok(LeaseState::Held);
        }
        self.inner.inspect(&self.inward(lease)).await
    }

    async fn close_session(&self, session: MutantSession, now: Timestamp) -> Result<()> {
        self.close_spoiled(session.0, now).await
    }

    async fn list_deliveries(&self, query: &DeliveryQuery, now: Timestamp) -> Result<DeliveryPage> {
        let mut page = self.inner.list_deliveries(query, now).await?;
        if self.is(Fault::ListsBackwards) {
            page.deliveries.reverse();
        }
        if let (Fault::SkipsBetweenPages, Some(next)) = (self.fault, &mut page.next) {
            next.handler = HandlerId::stored("\u{10ffff}".to_owned());
        }
        Ok(page)
    }

    async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        let mut answers = self.inner.requeue(ids, now).await?;
        if self.is(Fault::RequeuesAnything) {
            answers.fill(Requeued::Requeued);
        }
        Ok(answers)
    }

    async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        let mut statistics = self.inner.statistics(now).await?;
        if self.is(Fault::CountsTheHeldAsPending) {
            statistics.pending += std::mem::take(&mut statistics.processing);
        }
        if self.is(Fault::HasNoHistory) {
            statistics.completed = 0;
        }
        Ok(statistics)
    }

    async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        let mut backlog = self.inner.backlog().await?;
        if self.is(Fault::HidesUnknownHandlers) {
            let sessions = self.sessions.lock().await;
            backlog.retain(|of| sessions.living.values().any(|session| session.request.handlers.contains(&of.handler)));
        }
        Ok(backlog)
    }

    async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        let mut request = *request;
        match self.fault {
            Fault::PurgesWithoutEnd => request.limit = usize::MAX,
            Fault::PurgesTheYoung => request.completed_before = request.completed_before.and(Some(Timestamp::MAX)),
            Fault::PurgesTheDeadUnasked => request.dead_before = request.completed_before,
            Fault::KeepsTheDead => request.dead_before = None,
            _ => {}
        }
        self.inner.purge(&request).await
    }

    async fn watch(&self, wake: WakeUp) -> Result<Option<WatchGuard>> {
        self.inner.watch(wake).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }

    fn force_close(&self) {
        self.inner.force_close();
    }
}
