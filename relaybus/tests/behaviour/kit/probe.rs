//! The in-memory store with somebody watching: it records every call and fails or holds those it is told to.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaybus::memory::{Memory, MemorySession, MemoryTransaction};
use relaybus::store::{
    AppendBatch, Appended, Capabilities, Completed, DeliveryId, DeliveryPage, DeliveryQuery, HandlerBacklog, Lease,
    LeaseState, PurgeRequest, Purged, Requeued, SessionRequest, Settled, Settlement, Statistics, TransactionOptions,
    Turn, TurnRequest, TypeRef, WakeUp, WatchGuard,
};
use relaybus::{Error, EventStore, MemoryStore, Result, Timestamp};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::Seen;

/// What happens to a call.
#[derive(Clone)]
pub(crate) enum Fault {
    /// It fails before it did anything.
    Fail,
    /// It does its work, and its answer is lost.
    LoseAnswer,
    /// It never answers and does nothing.
    Hang,
    /// It waits for a permit first.
    Wait(Arc<Semaphore>),
    /// The session is gone.
    SessionLost,
}

/// One call of the dispatcher's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Take {
    /// Virtual time since the store was made.
    pub(crate) at: Duration,
    pub(crate) completed: usize,
    /// The limit of the claim, if it had one.
    pub(crate) claim: Option<usize>,
    pub(crate) renew: bool,
    /// Settlements sent before it.
    pub(crate) settlements: usize,
    /// Deliveries that it handed out.
    pub(crate) claimed: usize,
}

#[derive(Clone)]
pub(crate) struct Probe {
    inner: MemoryStore,
    shared: Arc<Shared>,
}

struct Shared {
    born: Instant,
    calls: Seen,
    takes: Seen<Take>,
    purges: Seen<PurgeRequest>,
    begun: Seen<TransactionOptions>,
    once: Mutex<HashMap<&'static str, VecDeque<Fault>>>,
    always: Mutex<HashMap<&'static str, Fault>>,
    capabilities: Mutex<Option<Capabilities>>,
}

impl Probe {
    #[allow(clippy::disallowed_methods, reason = "tests drive time themselves")]
    pub(crate) fn new(inner: MemoryStore) -> Self {
        let shared = Shared {
            born: Instant::now(),
            calls: Seen::default(),
            takes: Seen::default(),
            purges: Seen::default(),
            begun: Seen::default(),
            once: Mutex::default(),
            always: Mutex::default(),
            capabilities: Mutex::default(),
        };
        Self { inner, shared: Arc::new(shared) }
    }

    /// The names of the calls so far, but for those of ordinary turns.
    pub(crate) fn calls(&self) -> &Seen {
        &self.shared.calls
    }

    pub(crate) fn takes(&self) -> &Seen<Take> {
        &self.shared.takes
    }

    pub(crate) fn purges(&self) -> &Seen<PurgeRequest> {
        &self.shared.purges
    }

    pub(crate) fn begun(&self) -> &Seen<TransactionOptions> {
        &self.shared.begun
    }

    /// The next call of this name, after those that were told before, ends so.
    pub(crate) fn once(&self, call: &'static str, fault: Fault) {
        self.shared.once.lock().unwrap().entry(call).or_default().push_back(fault);
    }

    /// Every call of this name ends so.
    pub(crate) fn always(&self, call: &'static str, fault: Fault) {
        self.shared.always.lock().unwrap().insert(call, fault);
    }

    pub(crate) fn heal(&self, call: &'static str) {
        self.shared.always.lock().unwrap().remove(call);
    }

    pub(crate) fn set_capabilities(&self, change: impl FnOnce(&mut Capabilities)) {
        let mut capabilities = self.capabilities();
        change(&mut capabilities);
        *self.shared.capabilities.lock().unwrap() = Some(capabilities);
    }

    fn fault(&self, call: &'static str) -> Option<Fault> {
        let once = self.shared.once.lock().unwrap().get_mut(call).and_then(VecDeque::pop_front);
        once.or_else(|| self.shared.always.lock().unwrap().get(call).cloned())
    }

    async fn through<T>(&self, call: &'static str, work: impl Future<Output = Result<T>>) -> Result<T> {
        if call != "turn" {
            self.shared.calls.push(call);
        }
        self.meet(call, work).await
    }

    async fn meet<T>(&self, call: &'static str, work: impl Future<Output = Result<T>>) -> Result<T> {
        match self.fault(call) {
            None => work.await,
            Some(Fault::Fail) => Err(Error::store_retryable("the store is away", "connection refused")),
            Some(Fault::SessionLost) => Err(Error::SessionLost),
            Some(Fault::LoseAnswer) => {
                work.await?;
                Err(Error::store_retryable("the answer was lost", "connection reset"))
            }
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Wait(gate)) => {
                gate.acquire().await.unwrap().forget();
                work.await
            }
        }
    }
}

impl EventStore for Probe {
    type Family = Memory;
    type Transaction = MemoryTransaction;
    type Session = MemorySession;

    fn name(&self) -> &'static str {
        "probe"
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities.lock().unwrap().unwrap_or_else(|| self.inner.capabilities())
    }

    fn handles(&self) -> &'static [TypeRef] {
        self.inner.handles()
    }

    async fn setup(&self) -> Result<()> {
        self.through("setup", self.inner.setup()).await
    }

    async fn verify(&self) -> Result<()> {
        self.through("verify", self.inner.verify()).await
    }

    async fn begin(&self, options: &TransactionOptions) -> Result<MemoryTransaction> {
        self.shared.begun.push(options.clone());
        let mut plain = options.clone();
        plain.isolation = None;
        self.through("begin", self.inner.begin(&plain)).await
    }

    async fn append<'c>(&'c self, handle: &'c mut MemoryTransaction, batch: &AppendBatch) -> Result<Appended> {
        self.through("append", self.inner.append(handle, batch)).await
    }

    async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        self.through("append_alone", self.inner.append_alone(batch)).await
    }

    async fn open_session(&self, request: &SessionRequest) -> Result<MemorySession> {
        self.through("open_session", self.inner.open_session(request)).await
    }

    async fn turn(&self, session: &mut MemorySession, request: &TurnRequest<'_>) -> Result<Turn> {
        let mut take = Take {
            at: self.shared.born.elapsed_virtual(),
            completed: request.completed.len(),
            claim: request.claim.map(|claim| claim.limit),
            renew: request.renew.is_some(),
            settlements: self.shared.calls.all().iter().filter(|call| *call == "settle").count(),
            claimed: 0,
        };
        let work = async {
            if request.completed.is_empty() {
                self.inner.turn(session, request).await
            } else {
                self.meet("complete", self.inner.turn(session, request)).await
            }
        };
        let turn = self.through("turn", work).await;
        take.claimed = turn.as_ref().map_or(0, |turn| turn.runs.iter().map(|run| run.deliveries.len()).sum());
        self.shared.takes.push(take);
        turn
    }

    async fn settle(
        &self,
        session: &mut MemorySession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        self.through("settle", self.inner.settle(session, settlements, now)).await
    }

    async fn complete_in(
        &self,
        transaction: &mut MemoryTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        self.through("complete_in", self.inner.complete_in(transaction, completed, now)).await
    }

    async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        self.through("inspect", self.inner.inspect(lease)).await
    }

    async fn close_session(&self, session: MemorySession, now: Timestamp) -> Result<()> {
        self.through("close_session", self.inner.close_session(session, now)).await
    }

    async fn list_deliveries(&self, query: &DeliveryQuery, now: Timestamp) -> Result<DeliveryPage> {
        self.through("list_deliveries", self.inner.list_deliveries(query, now)).await
    }

    async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        self.through("requeue", self.inner.requeue(ids, now)).await
    }

    async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        self.through("statistics", self.inner.statistics(now)).await
    }

    async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        self.through("backlog", self.inner.backlog()).await
    }

    async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        self.shared.purges.push(*request);
        self.through("purge", self.inner.purge(request)).await
    }

    async fn watch(&self, wake: WakeUp) -> Result<Option<WatchGuard>> {
        let reports = self.capabilities().reports_commits;
        let work = async { if reports { self.inner.watch(wake).await } else { Ok(None) } };
        self.through("watch", work).await
    }

    async fn close(&self) -> Result<()> {
        self.through("close", self.inner.close()).await
    }

    fn force_close(&self) {
        self.shared.calls.push("force_close");
    }
}

trait Virtual {
    fn elapsed_virtual(&self) -> Duration;
}

impl Virtual for Instant {
    #[allow(clippy::disallowed_methods, reason = "tokio's instant is virtual while its time is paused")]
    fn elapsed_virtual(&self) -> Duration {
        self.elapsed()
    }
}
