//! The in-memory store: the reference for what every store means, and the store of tests and small tools.
//!
//! It keeps nothing when its process ends, so it refuses to start in production.
//!
//! # How it works
//!
//! All tables are in one `State` behind one mutex. Each operation is one critical section without an
//! await in it, so a dropped future has either done all of its work or none. Events are kept as `Arc`s and handed out by
//! cloning those; every handler has a queue of what can be claimed, ordered by due time and commit, which holds unkeyed
//! deliveries and only the head of each key. A claim takes from the front of the queues it names.
//!
//! # Invariants
//!
//! 1. The statuses in the events are the truth; every queue, chain, count and set of held deliveries is derived from them
//!    in `State::set_status`, the only place where a status changes.
//! 2. A key is listed in its handler's due queue exactly when it has pending deliveries and no session holds one of its
//!    deliveries; what is listed is the earliest pending one.
//! 3. A delivery is processing exactly as long as one session that exists holds it.
//! 4. A token that was given out once is never given out again.
//!
//! # Interleavings, and what the mutex makes of them
//!
//! - *Two claims*: the second sees the queues after the first. A delivery is in no queue while it is held.
//! - *A completion and a takeover*: whichever comes second finds another holder, or no delivery, and changes nothing.
//! - *A handler's transaction and a takeover*: the lease is checked in the critical section that commits. A transaction
//!   that loses is rolled back whole.
//! - *Two publishers of one key*: an event gets its position when its transaction commits, so positions are the order
//!   of commits and no reader ever sees one appear behind a later one.
//! - *Two publishers of one id*: the second to commit finds the event and adds only handlers it never had.
//! - *A publisher and a purge*: the event is there, with all it remembers, or it is gone and new.
//! - *A late session*: it exists, then its turn is as good as ever; or it was taken over, then nothing of its turn happens.
//! - *A requeue and a run of its key*: the run goes on to its end, then the requeued delivery is the earliest one.
//!
//! Wake-ups are called after the mutex is released, so they may use the store.

mod admin;
mod append;
mod claim;
mod lease;
mod settle;
mod state;
#[cfg(test)]
mod tests;
mod transaction;

pub use transaction::MemoryTransaction;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use append::StagedEvent;
use state::State;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::store::{
    AppendBatch, Appended, Capabilities, Completed, DeliveryId, DeliveryPage, DeliveryQuery, EventStore, Family,
    HandlerBacklog, Lease, LeaseState, PurgeRequest, Purged, Requeued, SessionRequest, Settled, Settlement, Statistics,
    TransactionOptions, Turn, TurnRequest, TypeRef, Verdict, WakeUp, WatchGuard,
};

/// The family of the in-memory store: its only handle is [`MemoryTransaction`].
#[derive(Debug)]
pub enum Memory {}

impl Family for Memory {
    type Handle<'c> = &'c mut MemoryTransaction;
    const NAME: &'static str = "memory";
}

/// A store in memory, for tests and tools. Cloning is cheap; clones share everything.
///
/// ```
/// use relaybus::memory::MemoryStore;
/// use relaybus::store::EventStore;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), relaybus::Error> {
/// let store = MemoryStore::new().completion_history(true);
/// store.setup().await?;
/// assert!(store.capabilities().completion_history);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("events", &self.shared.lock().events.len()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether completed deliveries are kept, so that they can be listed and counted until they are purged. Defaults to
    /// `false`: a completed delivery is deleted at once.
    #[must_use]
    pub fn completion_history(self, retain: bool) -> Self {
        self.shared.lock().completion_history = retain;
        self
    }

    /// Lets the store start where the environment variable `RELAYBUS_ENV` is `production`. By default it refuses,
    /// because everything it holds is lost when the process ends.
    #[must_use]
    pub fn allow_in_production(self) -> Self {
        self.shared.lock().allow_in_production = true;
        self
    }

    fn check_environment(&self) -> Result<()> {
        let environment = std::env::var_os(ENVIRONMENT_VARIABLE);
        let is_production = environment.is_some_and(|value| value == PRODUCTION);
        if is_production && !self.shared.lock().allow_in_production {
            return Err(Error::configuration(format!(
                "the in-memory store loses every event when the process ends and `{ENVIRONMENT_VARIABLE}` is \
                 `{PRODUCTION}`: use a database store, or call `allow_in_production`"
            )));
        }
        Ok(())
    }
}

/// Names the environment the process runs in.
const ENVIRONMENT_VARIABLE: &str = "RELAYBUS_ENV";
/// The environment in which the store refuses to start.
const PRODUCTION: &str = "production";

/// What the clones, sessions, transactions and watches of one store share.
#[derive(Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    watchers: Mutex<Watchers>,
}

#[derive(Default)]
struct Watchers {
    last: u64,
    /// Replaced as a whole, so that calling them needs no copy and no lock.
    wakes: Arc<Vec<(u64, WakeUp)>>,
}

impl Shared {
    /// The tables. A panic of an `on_commit` closure cannot leave them half changed, so poison means nothing here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watchers(&self) -> MutexGuard<'_, Watchers> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let wakes = self.watchers().wakes.clone();
        for (_, wake) in wakes.iter() {
            wake();
        }
    }

    fn add_watcher(&self, wake: WakeUp) -> u64 {
        let mut watchers = self.watchers();
        watchers.last += 1;
        let added = watchers.wakes.iter().cloned().chain([(watchers.last, wake)]);
        watchers.wakes = Arc::new(added.collect());
        watchers.last
    }

    fn remove_watcher(&self, number: u64) {
        let mut watchers = self.watchers();
        let kept = watchers.wakes.iter().filter(|(other, _)| *other != number).cloned();
        watchers.wakes = Arc::new(kept.collect());
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// Ends a watch when dropped.
struct Watch {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.remove_watcher(self.number);
    }
}

/// A dispatcher's session with a [`MemoryStore`]. Dropping it is a crash: what it held waits for its expiry.
#[derive(Debug)]
pub struct MemorySession {
    shared: Arc<Shared>,
    id: i64,
}

impl MemorySession {
    fn belongs_to(&self, shared: &Arc<Shared>) -> Result<()> {
        if Arc::ptr_eq(&self.shared, shared) {
            return Ok(());
        }
        Err(Error::configuration(
            "this session belongs to another in-memory store: open one with the store it is used with",
        ))
    }
}

impl EventStore for MemoryStore {
    type Family = Memory;
    type Transaction = MemoryTransaction;
    type Session = MemorySession;

    fn name(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            completion_history: self.shared.lock().completion_history,
            concurrent_writers: true,
            reports_commits: true,
            ..Capabilities::none()
        }
    }

    fn handles(&self) -> &'static [TypeRef] {
        const HANDLES: &[TypeRef] = &[TypeRef::of::<MemoryTransaction>()];
        HANDLES
    }

    async fn setup(&self) -> Result<()> {
        self.check_environment()
    }

    async fn verify(&self) -> Result<()> {
        self.check_environment()
    }

    async fn begin(&self, options: &TransactionOptions) -> Result<MemoryTransaction> {
        if let Some(level) = options.isolation {
            return Err(Error::configuration(format!(
                "the in-memory store has no isolation levels, `{}` was asked for: leave it out",
                level.as_str()
            )));
        }
        Ok(MemoryTransaction::new(self.shared.clone()))
    }

    async fn append<'c>(&'c self, handle: &'c mut MemoryTransaction, batch: &AppendBatch) -> Result<Appended> {
        handle.belongs_to(&self.shared)?;
        Ok(handle.append(batch))
    }

    async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        let staged: Vec<StagedEvent> = batch.events.iter().map(|event| StagedEvent::new(event, batch.now)).collect();
        let mut is_due = false;
        let mut outcomes = Vec::with_capacity(staged.len());
        let mut state = self.shared.lock();
        for event in &staged {
            let outcome = state.append(event);
            is_due |= event.is_due(outcome);
            outcomes.push(outcome);
        }
        drop(state);
        if is_due {
            self.shared.wake();
        }
        Ok(Appended { outcomes })
    }

    async fn open_session(&self, request: &SessionRequest) -> Result<MemorySession> {
        let id = self.shared.lock().open_session(request);
        Ok(MemorySession { shared: self.shared.clone(), id })
    }

    async fn turn(&self, session: &mut MemorySession, request: &TurnRequest<'_>) -> Result<Turn> {
        session.belongs_to(&self.shared)?;
        let turn = self.shared.lock().turn(session.id, request)?;
        if turn.taken_over > 0 {
            self.shared.wake();
        }
        Ok(turn)
    }

    async fn settle(
        &self,
        session: &mut MemorySession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        session.belongs_to(&self.shared)?;
        let mut state = self.shared.lock();
        let settled: Vec<Settled> =
            settlements.iter().map(|settlement| state.settle(session.id, settlement, now)).collect();
        drop(state);
        // A failure is due later, and whoever buried a delivery claims what it released. Only a release hands work to others.
        let is_release = |(settlement, settled): (&Settlement, &Settled)| {
            settlement.verdict == Verdict::Release && *settled == Settled::Applied
        };
        if settlements.iter().zip(&settled).any(is_release) {
            self.shared.wake();
        }
        Ok(settled)
    }

    async fn complete_in(
        &self,
        transaction: &mut MemoryTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        transaction.belongs_to(&self.shared)?;
        Ok(transaction.complete(completed, now))
    }

    async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        Ok(self.shared.lock().inspect(lease))
    }

    async fn close_session(&self, session: MemorySession, _now: Timestamp) -> Result<()> {
        session.belongs_to(&self.shared)?;
        let handed_back = self.shared.lock().close_session(session.id);
        if handed_back > 0 {
            self.shared.wake();
        }
        Ok(())
    }

    async fn list_deliveries(&self, query: &DeliveryQuery, _now: Timestamp) -> Result<DeliveryPage> {
        Ok(self.shared.lock().list(query))
    }

    async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        let mut state = self.shared.lock();
        let requeued: Vec<Requeued> = ids.iter().map(|id| state.requeue(id, now)).collect();
        drop(state);
        if requeued.contains(&Requeued::Requeued) {
            self.shared.wake();
        }
        Ok(requeued)
    }

    async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        Ok(self.shared.lock().statistics(now))
    }

    async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        Ok(self.shared.lock().backlog())
    }

    async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        Ok(self.shared.lock().purge(request))
    }

    async fn watch(&self, wake: WakeUp) -> Result<Option<WatchGuard>> {
        let number = self.shared.add_watcher(wake);
        Ok(Some(Box::new(Watch { shared: self.shared.clone(), number })))
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }

    fn force_close(&self) {}
}

impl State {
    /// `finished` needs nothing here: a commit that completed a delivery has freed it already.
    fn turn(&mut self, session: i64, request: &TurnRequest<'_>) -> Result<Turn> {
        if !self.sessions.contains_key(&session) {
            return Err(Error::SessionLost);
        }
        let mut turn = Turn::default();
        turn.completed.extend(request.completed.iter().map(|done| self.complete_for(session, done, request.now)));
        if let Some(expires_at) = request.renew {
            self.renew(session, expires_at);
        }
        if request.sweep {
            turn.taken_over = self.take_over_expired(session, request.now);
        }
        if let Some(claim) = &request.claim {
            (turn.runs, turn.more) = self.claim(session, claim, request.now);
        }
        Ok(turn)
    }
}
