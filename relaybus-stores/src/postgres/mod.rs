//! The PostgreSQL store: the application's own database, any number of processes, nothing lost.
//!
//! Events and deliveries live beside the application's tables, so an event commits with the rows it tells of, and the
//! completion of a transactional handler commits with its effects: exactly once, whatever happens. PostgreSQL 13 or newer.
//!
//! ```no_run
//! # async fn example() -> relaybus::Result<()> {
//! use relaybus_stores::PostgresStore;
//! let store = PostgresStore::builder("postgres://app:secret@localhost/app").schema("app").build()?;
//! # Ok(()) }
//! ```
//!
//! # Invariant
//!
//! A delivery is a row that is written once and deleted once. What a worker holds is told by its session's row (the lanes it
//! owns and the deliveries in flight), and every write about a delivery compares `claims`, which each end of a claim counts
//! up. A takeover is the only thing that ends somebody else's claims, and it ends all of a session at once.
//!
//! # Lock order
//!
//! Own session, another session (skipped when locked), rows of `handlers` by number, deliveries (skipped when locked, or by
//! number), completions by id. Who holds a delivery waits for no session but, in a turn, its own. Publishing locks the
//! gate of all keys, then keys by slot, then events by id; of new ids nobody else knows, so theirs have no order.
//!
//! # Interleavings
//!
//! They are told where they are stopped: `claim` (lost answers, late statements, cursors), `lanes` (sharing), `lease`
//! (takeover), `settle`, `append`, `alone`, `publishing`, `handlers`, `purge`, `transaction` and `wakeups`.
//!
//! # Connections
//!
//! The pool is for transactions. Publishing without one has up to two connections (`publishing`), and takes one of the pool when it
//! must wait for another's lock. The store's own work never waits for it: a dispatcher has a connection of its own, lists and
//! look-ups share up to four, and wake-ups use two.

mod admin;
mod alone;
mod append;
mod args;
mod background;
mod claim;
mod cursors;
mod error;
mod event_row;
mod handle;
mod handlers;
mod held_keys;
mod lanes;
mod lease;
mod line;
mod options;
mod pooler;
mod publishing;
mod purge;
mod row;
mod send;
mod session;
mod settle;
mod setup;
mod sql;
mod transaction;
mod wakeups;
mod work;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use relaybus::store::{
    AppendBatch, Appended, Capabilities, Completed, DeliveryId, DeliveryPage, DeliveryQuery, HandlerBacklog, Lease,
    LeaseState, PurgeRequest, Purged, Requeued, SessionRequest, Settled, Settlement, Statistics, TransactionOptions,
    Turn, TurnRequest, TypeRef, WakeUp, WatchGuard,
};
use relaybus::{Error, EventStore, Result, Timestamp};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgConnection};

pub use append::MAX_EVENT_BYTES;
pub use error::is_serialization_failure;
pub use handle::{PgAnswer, PgClient, PgClientError, PgColumn, PgHandle, PgValue, PostgreSql};
pub use options::{
    DEFAULT_CONNECTIONS, DEFAULT_PURGE_BATCH, DEFAULT_SCHEMA, DEFAULT_TABLE_PREFIX, DEFAULT_TAKEOVER_MARGIN,
    PostgresStoreBuilder, WakeUpMode,
};
pub use session::PostgresSession;
pub use transaction::PgTransaction;

use held_keys::HeldKeys;
use options::Source;
use pooler::Way;
use publishing::Publishing;
use sql::Sql;
use wakeups::Wakeups;

/// A session's statements time out after a third of its lease, within these bounds.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);
/// A completion is recorded when it comes this much later than its event: the slack of the tables less a margin.
const UNRECORDED: Duration = Duration::from_secs((SLACK_SECONDS - setup::SLACK_MARGIN) as u64);
/// What the tables say: an event without a recorded completion counts from its own time plus this.
const SLACK_SECONDS: i64 = 3_600;

/// The PostgreSQL store; the module page has its contract. Cloning is cheap and shares everything.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    builder: PostgresStoreBuilder,
    sql: Sql,
    /// Transactions; the application's, or the store's own.
    pool: PgPool,
    owns_pool: bool,
    /// The store's own statements that belong to no session; see [`Inner::work`].
    work_pool: PgPool,
    publishing: Arc<Publishing>,
    held_keys: HeldKeys,
    way: Arc<Way>,
    lock_class: i32,
    /// Where the tables are, for messages.
    address: String,
    /// Shared with the way: it forgets what a newer connection may show otherwise.
    handlers: Arc<RwLock<handlers::Remembered>>,
    wakeups: Arc<Wakeups>,
    /// Major version of the server, 0 before the first look.
    version: AtomicU32,
}

impl PostgresStore {
    /// Options of a store at a URL such as `postgres://user:password@host:5432/database`.
    pub fn builder(url: impl Into<String>) -> PostgresStoreBuilder {
        PostgresStoreBuilder::new(Source::Url(url.into()))
    }

    /// Options of a store that connects with these options.
    pub fn with_options(options: PgConnectOptions) -> PostgresStoreBuilder {
        PostgresStoreBuilder::new(Source::Options(Box::new(options)))
    }

    /// Options of a store that opens transactions on the application's pool. Its settings and its session state are never
    /// changed, and it is never closed; the store's own statements and publishes without a transaction use connections of
    /// their own, with the same options.
    #[must_use = "call `build` to open the store"]
    pub fn with_pool(pool: PgPool) -> PostgresStoreBuilder {
        PostgresStoreBuilder::new(Source::Pool(pool))
    }

    /// The pool for transactions.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.inner.pool
    }

    /// The schema of its tables.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.inner.builder.schema
    }

    /// Whether statements are prepared once a connection: as asked for, unless a pooler was found that does not keep them.
    /// `false` before the first call that reached the server.
    #[must_use]
    pub fn prepares_statements(&self) -> bool {
        self.inner.prepared()
    }

    /// Every text the store sends, by name, for the test of their plans.
    #[doc(hidden)]
    #[must_use]
    pub fn texts(&self) -> Vec<(String, String)> {
        self.inner.sql.all()
    }

    /// An error with the address of the server in it, where it is about reaching that.
    fn located(&self, error: Error) -> Error {
        error::located(error, &self.inner.address)
    }

    fn open(builder: PostgresStoreBuilder) -> Result<Self> {
        let names = builder.names();
        let handlers = Arc::<RwLock<handlers::Remembered>>::default();
        let way = Arc::new(Way::new(builder.prepared, Arc::clone(&handlers)));
        let (pool, owns_pool) = builder.pool(&way)?;
        let notify = match builder.wake_up {
            WakeUpMode::Notify => Some(builder.connection()?),
            WakeUpMode::Poll => None,
        };
        let inner = Inner {
            work_pool: builder.work_pool(&way)?,
            lock_class: names.lock_class(),
            address: error::address_of(&builder.connection()?),
            publishing: Publishing::new(builder.connection()?, Arc::clone(&way)),
            held_keys: HeldKeys::default(),
            wakeups: Arc::new(Wakeups::new(names.channel(), notify, Arc::clone(&way))),
            sql: Sql::new(names, builder.history),
            way,
            pool,
            owns_pool,
            handlers,
            version: AtomicU32::new(0),
            builder,
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Inner {
    /// Completions of events stored before this are recorded.
    fn late_before(&self, now: Timestamp) -> Timestamp {
        now.before(UNRECORDED)
    }

    fn server_version(&self) -> u32 {
        self.version.load(Ordering::Relaxed)
    }

    fn learn_version(&self, number: Option<u32>) {
        self.version.store(number.unwrap_or(0) / 10_000, Ordering::Relaxed);
    }
}

impl EventStore for PostgresStore {
    type Family = PostgreSql;
    type Transaction = PgTransaction;
    type Session = PostgresSession;

    fn name(&self) -> &'static str {
        "postgres"
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::none();
        capabilities.durable = true;
        capabilities.several_processes = true;
        capabilities.completion_history = self.inner.sql.history;
        capabilities.concurrent_writers = true;
        capabilities.reports_commits = self.inner.wakeups.hears_others();
        capabilities.isolation_levels = true;
        capabilities
    }

    fn handles(&self) -> &'static [TypeRef] {
        const { &[TypeRef::of::<PgTransaction>(), TypeRef::of::<PgConnection>()] }
    }

    fn is_serialization_failure(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        error.downcast_ref().is_some_and(is_serialization_failure)
    }

    async fn setup(&self) -> Result<()> {
        self.inner.setup().await.map_err(|error| self.located(error))
    }

    async fn verify(&self) -> Result<()> {
        self.inner.verify().await.map_err(|error| self.located(error))
    }

    async fn begin(&self, options: &TransactionOptions) -> Result<PgTransaction> {
        self.inner.begin(options).await.map_err(|error| self.located(error))
    }

    async fn append<'c>(&'c self, mut handle: PgHandle<'c>, batch: &AppendBatch) -> Result<Appended> {
        transaction::require_open(&mut handle, batch).await?;
        self.inner.append(handle, batch).await
    }

    async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        self.inner.append_alone(batch).await.map_err(|error| self.located(error))
    }

    async fn open_session(&self, request: &SessionRequest) -> Result<PostgresSession> {
        self.inner.open_session(request).await.map_err(|error| self.located(error))
    }

    async fn turn(&self, session: &mut PostgresSession, request: &TurnRequest<'_>) -> Result<Turn> {
        self.inner.turn(session, request).await.map_err(|error| self.located(error))
    }

    async fn settle(
        &self,
        session: &mut PostgresSession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        self.inner.settle(session, settlements, now).await.map_err(|error| self.located(error))
    }

    async fn complete_in(
        &self,
        transaction: &mut PgTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        self.inner.complete_in(transaction, completed, now).await
    }

    async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        self.inner.inspect(lease).await.map_err(|error| self.located(error))
    }

    async fn close_session(&self, session: PostgresSession, _now: Timestamp) -> Result<()> {
        self.inner.close_session(session).await.map_err(|error| self.located(error))
    }

    async fn list_deliveries(&self, query: &DeliveryQuery, _now: Timestamp) -> Result<DeliveryPage> {
        self.inner.list_deliveries(query).await.map_err(|error| self.located(error))
    }

    async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        self.inner.requeue(ids, now).await.map_err(|error| self.located(error))
    }

    async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        self.inner.statistics(now).await.map_err(|error| self.located(error))
    }

    async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        self.inner.backlog().await.map_err(|error| self.located(error))
    }

    async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        self.inner.purge(request).await.map_err(|error| self.located(error))
    }

    async fn server_time(&self) -> Result<Option<Timestamp>> {
        self.inner.server_time().await.map(Some).map_err(|error| self.located(error))
    }

    async fn watch(&self, wake: WakeUp) -> Result<Option<WatchGuard>> {
        Ok(Some(wakeups::watch(&self.inner.wakeups, wake).await))
    }

    async fn close(&self) -> Result<()> {
        self.inner.wakeups.close();
        self.inner.publishing.close().await;
        if self.inner.owns_pool {
            self.inner.pool.close().await;
        }
        self.inner.work_pool.close().await;
        Ok(())
    }

    fn force_close(&self) {
        self.inner.wakeups.close();
        self.inner.publishing.force_close();
        // Marks the pools closed at once; what they are doing ends by itself.
        if self.inner.owns_pool {
            drop(self.inner.pool.close());
        }
        drop(self.inner.work_pool.close());
    }
}
