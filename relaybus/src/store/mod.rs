//! The store: where events and deliveries live, and the contract that every store keeps.
//!
//! One trait, [`EventStore`], with few methods and batch inputs. Its meaning is fixed by the contract suite of
//! `relaybus-testing`, which every store passes unchanged. A store does storage and nothing else: spans, budgets,
//! validation and retries of a call are around it, not in it. It uses only the `now` it is given.
//!
//! # Words
//!
//! - A **delivery** is one event for one handler: pending, processing, dead, or completed (then its row is gone).
//! - A **session** is one dispatcher's presence in the store. It is created by [`EventStore::open_session`], lives as
//!   long as it is renewed, and is a fresh one each time: never a host name, never reused. `&mut Session` makes the
//!   statements of one session run one after another, which the lease protocol needs: a late answer can never meet a
//!   newer statement of the same session.
//! - A **lease** names a delivery together with the token under which it was claimed. Every later write carries it.
//! - The **token** is `<lane>:<epoch>:<claims>`. `claims` counts the claims of this delivery that ended before, so an
//!   older attempt's token never matches a newer claim, not even by the same worker.
//! - A **run** is a series of consecutive due deliveries of one handler and key, handed to one worker.
//!
//! # Invariants
//!
//! 1. *Atomic*: [`append`](EventStore::append) writes in the caller's transaction, and only there.
//! 2. *Once by id*: an event id is stored once. Appending it again adds deliveries only for handlers the event never had,
//!    whatever has completed since.
//! 3. *Fenced*: completing, rescheduling, burying and releasing change nothing unless the lease's token still stands.
//! 4. *Order*: a keyed delivery is handed out only when no earlier one of its handler and key is unfinished. Earlier
//!    means earlier committed. A dead delivery releases its followers.
//! 5. *One owner*: a delivery is processing under at most one live session.
//! 6. *Charged*: a session that ended without a word costs an attempt for each delivery it may have started: every
//!    unkeyed one it held and the first unfinished of each key. Followers of a run that never started are not charged.
//! 7. *Untouched*: a claim neither reads nor marks deliveries of handlers it was not asked for.
//!
//! # How the operations map to the stores
//!
//! MongoDB has no store yet; its column says how the operations will map, so that the trait need not change for it.
//!
//! | operation | memory | SQLite | PostgreSQL | MongoDB |
//! | --- | --- | --- | --- | --- |
//! | `append` | staged, applied under the store's mutex at commit | one text: events, heads into `ready`, followers into `waiting`; `seq` is the commit order because there is one writer | key slot lock, `nextval`, one statement for events and deliveries | `insertMany` of events and deliveries in the caller's session; one counter document a key |
//! | `open_session` | a number | a row of `sessions` with an `AUTOINCREMENT` id | a row of `sessions` with a random owner and the least free number; the numbered statements start here | a document with a random owner and a number, found by compare-and-set |
//! | `turn`: completed | remove under the mutex | one insert whose trigger deletes each by primary key with session and claims, then promotes the next of its key | `done` part of the one turn statement, by `(available_at, id, claims)` | `deleteMany` by id and claims, before the claim |
//! | `turn`: claim | heads of the due queues | read, packed into one value and marked in the transaction that completes; a look without a lock first when there is nothing to settle | `cand`/`pick` part of the same statement over the pairs this session owns | one find over the owned pairs, recorded in the session document |
//! | `turn`: renew | the session's expiry | `UPDATE sessions` in the same transaction | `rec` part: `greatest()` of the expiry, turn number | compare-and-set on turn number |
//! | `turn`: sweep | expired sessions taken over | takeover of one expired session by key, after a read outside the lock | sweep cursor, shares, taking and handing back of pairs, takeover of one expired session | as PostgreSQL |
//! | `settle` | under the mutex | `UPDATE ready` / move to `dead`, with session and claims | `WHERE claims = g`, `in_flight` rewritten in the same statement, numbered | by id and claims, then the session document |
//! | `complete_in` | staged, checked at commit | the settle lines in the handler's transaction; the first must hit one row | `DELETE .. WHERE claims = g` in the handler's transaction | `deleteOne` by id and claims in the session's transaction |
//! | `inspect` | lookup | read by primary key | `FOR UPDATE`, waits for the old backend | majority read |
//! | `close_session` | frees all | frees all rows of the session, deletes it | R5: hand back every pair, delete the row, one transaction | as PostgreSQL |
//! | `watch` | a callback | the directory's change events for the `-wal` file | `LISTEN` on one connection outside the pool | a change stream |
//! | `server_time` | none | none: one machine | `clock_timestamp()` | `$$NOW` |
//!
//! Where a store owns groups of deliveries (lanes), two claimers may not see each other's unclaimed work; the trait
//! promises only that a claimer that keeps taking turns drains what nobody else holds.

mod admin;
mod any;
mod append;
mod claim;
mod database;
mod handle;
mod lease;
mod settle;
mod transaction;

pub use admin::{
    DEFAULT_PAGE, DeliveryCursor, DeliveryId, DeliveryPage, DeliveryQuery, DeliveryRecord, DeliveryStatus,
    HandlerBacklog, MAX_PAGE, PurgeRequest, Purged, Requeued, Statistics,
};
pub use any::{AnyFamily, AnySession, AnyStore, AnyTransaction};
pub use append::{AppendBatch, AppendOutcome, Appended, NewEvent};
pub use claim::{ClaimRequest, Claimed, HandlerSlots, Run, Turn, TurnRequest};
pub use database::Database;
pub(crate) use database::inside;
pub use handle::{Family, HandleOf, Lends, TypeRef};
pub use lease::{LANES, Lease, LeaseState, LeaseToken, SessionRequest, lane_of};
pub use settle::{Completed, RunPart, Settled, Settlement, Verdict};
pub use transaction::{CommitError, IsolationLevel, StoreTransaction, TransactionOptions};

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::Result;

/// What a store can and cannot do. Each `false` has a contract case that shows the weaker behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Events survive the end of the process.
    pub durable: bool,
    /// Several processes can work on one store.
    pub several_processes: bool,
    /// The store keeps a record of completed deliveries.
    pub completion_history: bool,
    /// Several transactions can be open for writing at once.
    pub concurrent_writers: bool,
    /// [`EventStore::watch`] reports commits of the caller's own transactions too, of any process.
    pub reports_commits: bool,
    /// Isolation levels that [`EventStore::begin`] accepts beside the default.
    pub isolation_levels: bool,
}

impl Capabilities {
    /// A store that can do nothing of it; set what it can.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            durable: false,
            several_processes: false,
            completion_history: false,
            concurrent_writers: false,
            reports_commits: false,
            isolation_levels: false,
        }
    }
}

/// Called by a store when deliveries may have become due: a hint, never the truth. Cheap and never blocking.
pub type WakeUp = Arc<dyn Fn() + Send + Sync>;

/// Keeps a watch alive; dropping it ends the watch.
pub type WatchGuard = Box<dyn Any + Send + Sync>;

/// A store of events and deliveries. The module page has its contract.
///
/// Every future may be dropped at any await: a store leaves no open transaction and no lock behind. A dropped call
/// may still have taken effect; the dispatcher repeats it, and every operation can be repeated.
pub trait EventStore: Send + Sync + 'static {
    /// The family of transaction handles this store writes through.
    type Family: Family;
    /// The transaction that [`EventStore::begin`] opens. It has no lifetime parameter, so that closures over it can be
    /// spawned.
    type Transaction: HandleOf<Self::Family> + StoreTransaction;
    /// One dispatcher's presence in the store; see the module page.
    type Session: Send + 'static;

    /// A short name for messages and spans, such as `sqlite`.
    fn name(&self) -> &'static str;

    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// The handle types that a transactional handler may take, for the boot check.
    fn handles(&self) -> &'static [TypeRef];

    /// The database that the store writes to: a handle that is known to belong to another one is refused.
    ///
    /// Defaults to none: handles are not compared.
    fn database(&self) -> Option<&Database> {
        None
    }

    /// Whether `error` is one in which the store's database client says that the transaction could not be serialized: a
    /// transaction at an isolation level then runs again. Asked of what its work returned and of each cause of that.
    ///
    /// Defaults to no: only the store's own errors say so.
    fn is_serialization_failure(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        let _ = error;
        false
    }

    /// Creates or upgrades what the store needs. Idempotent, and safe when many processes start at once.
    fn setup(&self) -> impl Future<Output = Result<()>> + Send;

    /// Checks that the store can be used as it is, without creating anything: what `start` does with setup off.
    fn verify(&self) -> impl Future<Output = Result<()>> + Send;

    /// Opens a transaction.
    fn begin<'a>(
        &'a self,
        options: &'a TransactionOptions,
    ) -> impl Future<Output = Result<Self::Transaction>> + Send + 'a;

    /// Writes events and their deliveries through `handle`, in the caller's transaction.
    ///
    /// What cannot be stored fails before the first statement, so that the caller's transaction stays usable.
    fn append<'c>(
        &'c self,
        handle: <Self::Family as Family>::Handle<'c>,
        batch: &AppendBatch,
    ) -> impl Future<Output = Result<Appended>> + Send;

    /// Writes events and their deliveries in a transaction of the store's own, in as few round trips as it can.
    fn append_alone<'a>(&'a self, batch: &'a AppendBatch) -> impl Future<Output = Result<Appended>> + Send + 'a;

    /// Opens a session for a dispatcher.
    fn open_session<'a>(
        &'a self,
        request: &'a SessionRequest,
    ) -> impl Future<Output = Result<Self::Session>> + Send + 'a;

    /// One turn of a session: settle what completed, renew, take over what is orphaned, then claim what is due.
    ///
    /// `Err` means that nothing is known: the caller sends its completions again, which answers [`Settled::Gone`] for those
    /// that were applied. What the lost turn claimed was never handed out: the store gives it back before the session's next
    /// claim, and charges nothing. [`crate::Error::SessionLost`] means that the session was taken over: nothing of this turn
    /// was claimed, and the caller opens a new one.
    fn turn<'a>(
        &'a self,
        session: &'a mut Self::Session,
        request: &'a TurnRequest<'a>,
    ) -> impl Future<Output = Result<Turn>> + Send + 'a;

    /// Ends attempts that did not complete: reschedules, buries or releases each, fenced by its lease.
    ///
    /// Returns one answer for each. Settling again what was settled before answers [`Settled::Lost`] or
    /// [`Settled::Gone`] and changes nothing.
    fn settle<'a>(
        &'a self,
        session: &'a mut Self::Session,
        settlements: &'a [Settlement],
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Settled>>> + Send + 'a;

    /// Completes a delivery inside its handler's transaction. Anything but [`Settled::Applied`] means that the lease
    /// is gone: the caller rolls back.
    fn complete_in<'a>(
        &'a self,
        transaction: &'a mut Self::Transaction,
        completed: &'a Completed,
        now: Timestamp,
    ) -> impl Future<Output = Result<Settled>> + Send + 'a;

    /// What became of a lease whose transaction ended without an answer.
    fn inspect<'a>(&'a self, lease: &'a Lease) -> impl Future<Output = Result<LeaseState>> + Send + 'a;

    /// Ends a session and hands back everything it holds without charging an attempt.
    fn close_session(&self, session: Self::Session, now: Timestamp) -> impl Future<Output = Result<()>> + Send;

    /// Deliveries, oldest event first, a page at a time.
    fn list_deliveries<'a>(
        &'a self,
        query: &'a DeliveryQuery,
        now: Timestamp,
    ) -> impl Future<Output = Result<DeliveryPage>> + Send + 'a;

    /// Makes dead deliveries pending again, with all their attempts. One answer for each; only dead ones change.
    fn requeue<'a>(
        &'a self,
        ids: &'a [DeliveryId],
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<Requeued>>> + Send + 'a;

    /// How many deliveries there are, by status, and when the oldest due one became due.
    fn statistics(&self, now: Timestamp) -> impl Future<Output = Result<Statistics>> + Send;

    /// Every handler with unfinished deliveries and how many it has, known to this process or not.
    fn backlog(&self) -> impl Future<Output = Result<Vec<HandlerBacklog>>> + Send;

    /// Deletes what is past its retention, at most about `limit` rows. Call again while `more` is true.
    fn purge<'a>(&'a self, request: &'a PurgeRequest) -> impl Future<Output = Result<Purged>> + Send + 'a;

    /// The store's own time, where it has a clock that workers on several machines share. The bus corrects its own by it.
    ///
    /// Defaults to none: the store is on the machine of its workers.
    fn server_time(&self) -> impl Future<Output = Result<Option<Timestamp>>> + Send {
        std::future::ready(Ok(None))
    }

    /// Starts calling `wake` whenever deliveries may have become due, from any process where the store can tell.
    ///
    /// `None` when the store has nothing to report: the poll finds everything.
    fn watch(&self, wake: WakeUp) -> impl Future<Output = Result<Option<WatchGuard>>> + Send;

    /// Closes what the store opened itself. Idempotent.
    fn close(&self) -> impl Future<Output = Result<()>> + Send;

    /// Closes at once what the store opened itself, without waiting for statements that hang.
    fn force_close(&self);
}
