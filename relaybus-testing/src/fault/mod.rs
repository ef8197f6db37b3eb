//! Faults on demand: a store whose calls fail, come late, hang or lose their answers, by script or by seed.
//!
//! [`FaultyStore`] wraps any store and is one: same family of handles, same contract. What it makes up is what a network
//! and a database make up: a caller that gets an error does not know whether the store acted, and has to do what it
//! would do then. Delays are tokio timers, so they cost nothing under paused time.
//!
//! ```
//! use relaybus::EventStore;
//! use relaybus::memory::MemoryStore;
//! use relaybus_testing::fault::{Fault, FaultPlan, FaultyStore, Op};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let store = FaultyStore::new(MemoryStore::new(), FaultPlan::new().on(Op::Backlog, 2, Fault::Fail));
//! assert!(store.backlog().await.is_ok());
//! assert!(store.backlog().await.is_err());
//! assert_eq!(store.faults().met()[0].to_string(), "backlog 2: Fail");
//! # }
//! ```

mod control;
mod plan;
mod transaction;

pub use control::{Faults, Injected, Met};
pub use plan::{Fault, FaultPlan, Op};
pub use transaction::FaultyTransaction;

use std::sync::Arc;

use relaybus::store::{
    AppendBatch, Appended, Capabilities, Completed, Database, DeliveryId, DeliveryPage, DeliveryQuery, Family,
    HandlerBacklog, Lease, LeaseState, PurgeRequest, Purged, Requeued, Run, SessionRequest, Settled, Settlement,
    Statistics, TransactionOptions, Turn, TurnRequest, TypeRef, Verdict, WakeUp, WatchGuard,
};
use relaybus::{EventStore, Result, Timestamp};

/// A store whose calls meet the faults of a plan. Cloning is cheap; clones share store and faults.
///
/// A turn whose answer is lost has claimed deliveries that nobody knows of. A real store finds them again, because it
/// keeps in its session what it sent and what was answered. This one does the same: they are released before the next
/// turn or settlement of that session.
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: Arc<S>,
    faults: Faults,
}

impl<S> Clone for FaultyStore<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), faults: self.faults.clone() }
    }
}

/// A session of a [`FaultyStore`].
pub struct FaultySession<S: EventStore> {
    inner: S::Session,
    /// What was claimed by turns whose answers were lost.
    unheard: Vec<Run>,
}

impl<S: EventStore> FaultyStore<S> {
    /// Wraps `store`.
    pub fn new(store: S, plan: FaultPlan) -> Self {
        Self::sharing(Arc::new(store), plan)
    }

    /// Wraps a store that others use too, such as the next start of a process that crashed.
    pub fn sharing(store: Arc<S>, plan: FaultPlan) -> Self {
        Self { inner: store, faults: Faults::new(plan) }
    }

    /// The store inside, which no fault meets.
    #[must_use]
    pub fn inner(&self) -> &Arc<S> {
        &self.inner
    }

    /// The switch of the faults.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Releases what turns claimed whose answers were lost.
    async fn release_unheard(&self, session: &mut FaultySession<S>, now: Timestamp) -> Result<()> {
        if session.unheard.is_empty() {
            return Ok(());
        }
        let releases: Vec<Settlement> = session.unheard.iter().filter_map(release).collect();
        self.inner.settle(&mut session.inner, &releases, now).await?;
        session.unheard.clear();
        Ok(())
    }
}

/// Gives back a run that was never started.
fn release(run: &Run) -> Option<Settlement> {
    let (head, rest) = run.deliveries.split_first()?;
    let mut settlement = Settlement::new(head.lease.clone(), Verdict::Release);
    settlement.rest = rest.iter().map(|claimed| claimed.lease.clone()).collect();
    Some(settlement)
}

impl<S: EventStore> EventStore for FaultyStore<S> {
    type Family = S::Family;
    type Transaction = FaultyTransaction<S::Transaction>;
    type Session = FaultySession<S>;

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn handles(&self) -> &'static [TypeRef] {
        self.inner.handles()
    }

    fn database(&self) -> Option<&Database> {
        self.inner.database()
    }

    fn is_serialization_failure(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        self.inner.is_serialization_failure(error)
    }

    async fn setup(&self) -> Result<()> {
        self.faults.call(Op::Setup, self.inner.setup()).await
    }

    async fn verify(&self) -> Result<()> {
        self.faults.call(Op::Verify, self.inner.verify()).await
    }

    async fn begin(&self, options: &TransactionOptions) -> Result<Self::Transaction> {
        let inner = self.faults.call(Op::Begin, self.inner.begin(options)).await?;
        Ok(FaultyTransaction { inner, faults: self.faults.clone() })
    }

    async fn append<'c>(
        &'c self,
        handle: <Self::Family as Family>::Handle<'c>,
        batch: &AppendBatch,
    ) -> Result<Appended> {
        self.faults.call(Op::Append, self.inner.append(handle, batch)).await
    }

    async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        self.faults.call(Op::AppendAlone, self.inner.append_alone(batch)).await
    }

    async fn open_session(&self, request: &SessionRequest) -> Result<Self::Session> {
        let inner = self.faults.call(Op::OpenSession, self.inner.open_session(request)).await?;
        Ok(FaultySession { inner, unheard: Vec::new() })
    }

    async fn turn(&self, session: &mut Self::Session, request: &TurnRequest<'_>) -> Result<Turn> {
        self.faults.until_crash(self.release_unheard(session, request.now)).await?;
        let FaultySession { inner, unheard } = session;
        let turn = self.inner.turn(inner, request);
        self.faults.call_or(Op::Turn, turn, |turn| unheard.extend(turn.runs)).await
    }

    async fn settle(
        &self,
        session: &mut Self::Session,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        self.faults.until_crash(self.release_unheard(session, now)).await?;
        self.faults.call(Op::Settle, self.inner.settle(&mut session.inner, settlements, now)).await
    }

    async fn complete_in(
        &self,
        transaction: &mut Self::Transaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        self.faults.call(Op::CompleteIn, self.inner.complete_in(&mut transaction.inner, completed, now)).await
    }

    async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        self.faults.call(Op::Inspect, self.inner.inspect(lease)).await
    }

    async fn close_session(&self, session: Self::Session, now: Timestamp) -> Result<()> {
        self.faults.call(Op::CloseSession, self.inner.close_session(session.inner, now)).await
    }

    async fn list_deliveries(&self, query: &DeliveryQuery, now: Timestamp) -> Result<DeliveryPage> {
        self.faults.call(Op::ListDeliveries, self.inner.list_deliveries(query, now)).await
    }

    async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        self.faults.call(Op::Requeue, self.inner.requeue(ids, now)).await
    }

    async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        self.faults.call(Op::Statistics, self.inner.statistics(now)).await
    }

    async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        self.faults.call(Op::Backlog, self.inner.backlog()).await
    }

    async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        self.faults.call(Op::Purge, self.inner.purge(request)).await
    }

    async fn server_time(&self) -> Result<Option<Timestamp>> {
        // No fault of the plan is about it: it neither reads nor writes what is stored.
        self.inner.server_time().await
    }

    async fn watch(&self, wake: WakeUp) -> Result<Option<WatchGuard>> {
        self.faults.call(Op::Watch, self.inner.watch(wake)).await
    }

    async fn close(&self) -> Result<()> {
        self.faults.call(Op::Close, self.inner.close()).await
    }

    fn force_close(&self) {
        self.inner.force_close();
    }
}
