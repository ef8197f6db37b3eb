//! The SQLite store: one file, several processes, no server.
//!
//! Events and deliveries live in the application's own database file, so an event commits with the rows it tells of, and
//! the completion of a transactional handler commits with its effects: exactly once, whatever happens.
//!
//! ```no_run
//! # async fn example() -> relaybus::Result<()> {
//! use relaybus_stores::SqliteStore;
//! use relaybus_stores::sqlite::Durability;
//! let store = SqliteStore::builder("data/app.db").durability(Durability::Full).build().await?;
//! # Ok(()) }
//! ```
//!
//! # Invariant
//!
//! There is one writer at a time, of all processes. So the number of an event (`seq`, drawn under the write lock) is the
//! commit order, the row of a delivery is its own lease (`session` and `claims`), and no statement meets another in its
//! middle. Of each handler and key only the head is in `ready`, where claims look; its followers are in `waiting`.
//!
//! # Interleavings
//!
//! They are told where they are stopped: `claim` (lost answers, completions that meet nothing), `lease` (takeover,
//! and which lease rules the single writer makes trivial), `settle`, `purge`, `append`, `transaction`, `gate` and
//! `writer`.
//!
//! # Limits
//!
//! A transaction, a transactional handler's too, holds the only write lock while it is open: keep it short. The file must be
//! on a local disk: the write-ahead log needs shared memory. Do not copy the file's parts inside a process that uses it:
//! back up with `VACUUM INTO`. An event has at most 256 MiB. Text in the file must be UTF-8, which it is unless an
//! application chose UTF-16.
//!
//! A call of the bus that writes, made inside a transaction of the same file (`publish_detached`, another `transaction`,
//! `drain`), would wait for itself. It is refused at once with `RELAYBUS_TRANSACTION_REQUIRED`: in the closure of a
//! `bus.transaction`, in `#[transaction]` functions and in transactional handlers. The code around a `bus.begin()` is not
//! known to be inside, and neither is a task that was spawned inside: there such a call waits until SQLite gives up, after
//! five seconds.
//!
//! A transaction of a store on another file is refused. A connection of your own is taken as it is: that it is one of this
//! store's file, only you know. What is published through one of another file that has tables of relaybus too is stored
//! there, for whoever works on that file.
//!
//! Two things a transaction cannot protect from its own code:
//! - *An error that is swallowed.* When the disk is full or fails, SQLite takes the whole transaction back at that
//!   statement, and what the code runs after it on the same connection is no longer in a transaction: each statement
//!   stands by itself, at once and for good. So return such an error and let the transaction end. The store does what it
//!   can: it completes no delivery in such a transaction, and its commit fails.
//! - *A dropped `publish_all`.* Its events are written in groups, each of them whole. When the future of a `publish_all`
//!   in a transaction of your own is dropped midway (by `select!` or a timeout around it), the groups before stay in the
//!   transaction, and would be committed with it: roll back then.

mod admin;
mod append;
mod args;
mod claim;
mod error;
mod file;
mod gate;
mod lease;
mod options;
mod plan;
mod pool;
mod purge;
mod row;
mod settle;
mod setup;
mod sql;
mod tables;
mod transaction;
mod turn_sql;
mod wakeups;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use relaybus::store::{
    AppendBatch, Appended, Capabilities, Completed, Database, DeliveryId, DeliveryPage, DeliveryQuery, HandlerBacklog,
    Lease, LeaseState, PurgeRequest, Purged, Requeued, SessionRequest, Settled, Settlement, Statistics,
    TransactionOptions, Turn, TurnRequest, TypeRef, WakeUp, WatchGuard,
};
use relaybus::{Error, EventStore, Result, Timestamp};
use sqlx::SqlitePool;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

pub use append::MAX_EVENT_BYTES;
pub use lease::SqliteSession;
pub use options::{DEFAULT_TABLE_PREFIX, Durability, SqliteStoreBuilder};
pub use transaction::{Sqlite, SqliteTransaction};

use args::Binds;
use gate::Gate;
use lease::HeldLeases;
use sql::Sql;
use wakeups::Watchers;
use writer::{Counters, Outcome, Writer, run_text};

/// The SQLite store; the module page has its contract. Cloning is cheap and shares everything.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: Arc<PathBuf>,
    database: Database,
    builder: SqliteStoreBuilder,
    sql: Sql,
    gate: Arc<Gate>,
    writer: Writer,
    reader_options: SqliteConnectOptions,
    readers: SqlitePool,
    lent_readers: SqlitePool,
    transactions: SqlitePool,
    watchers: Arc<Watchers>,
    can_watch: bool,
    held: Mutex<HeldLeases>,
    counters: Arc<Counters>,
    /// Where the next purge goes on.
    purge_cursor: AtomicI64,
    /// Which file it was, to notice that another one has its name.
    file: Mutex<Option<(u64, u64)>>,
}

/// Calls that a store has sent to SQLite so far, for tests of what an operation costs.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// On the writer's connection.
    pub writes: u64,
    /// On connections that read.
    pub reads: u64,
}

impl SqliteStore {
    /// Opens the store in the file at `path` with the default options; see [`SqliteStoreBuilder::build`].
    ///
    /// # Errors
    /// As [`SqliteStoreBuilder::build`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self> {
        Self::builder(path).build().await
    }

    /// Options of a store in the file at `path`.
    pub fn builder(path: impl Into<PathBuf>) -> SqliteStoreBuilder {
        SqliteStoreBuilder::new(path.into())
    }

    /// Options of a store at a URL such as `sqlite://data/app.db`. What follows `sqlite://` is the path as it is, without
    /// escapes and parameters.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when the URL does not begin with `sqlite:` or names no path.
    pub fn from_url(url: &str) -> Result<SqliteStoreBuilder> {
        options::path_of_url(url).map(SqliteStoreBuilder::new)
    }

    /// The file of the store, links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// A connection for the application's own reads on the same file. It refuses to write; for that open a transaction.
    ///
    /// Dropping it gives it back. Do not keep a read transaction open on it: the log of the file grows meanwhile.
    ///
    /// # Errors
    /// `RELAYBUS_ERROR` when the file cannot be opened, the store is closed, or no connection gets free in five seconds.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn reader(&self) -> Result<PoolConnection<sqlx::Sqlite>> {
        self.inner.lent_readers.acquire().await.map_err(|error| self.inner.error("open a connection", error))
    }

    /// What the store has sent to SQLite so far.
    #[doc(hidden)]
    #[must_use]
    pub fn calls(&self) -> Calls {
        let counters = &self.inner.counters;
        Calls { writes: counters.writes.load(Ordering::Relaxed), reads: counters.reads.load(Ordering::Relaxed) }
    }

    /// Every text the store sends, by name, for the test of their plans.
    #[doc(hidden)]
    #[must_use]
    pub fn texts(&self) -> Vec<(String, String)> {
        self.inner.texts()
    }

    async fn connect(builder: SqliteStoreBuilder) -> Result<Self> {
        builder.check()?;
        let path = Arc::new(options::resolve(&builder.path)?);
        let sql = Sql::new(&builder.prefix, builder.history);
        setup::check_file(&path, &sql, tables::Missing::Allowed).await?;
        let options = builder.connection(&path, false);
        let reader_options = builder.reader(&path);
        let gate = Arc::new(Gate::new(&path));
        let database = Database::new(path.to_string_lossy());
        let counters = Arc::new(Counters::default());
        let inner = Inner {
            sql,
            writer: Writer::new(options.clone(), Arc::clone(&gate), Arc::clone(&counters), database.clone()),
            readers: pool::readers(reader_options.clone()),
            lent_readers: pool::lent_readers(reader_options.clone()),
            transactions: pool::transactions(options),
            can_watch: wakeups::can_watch(&path),
            path,
            database,
            builder,
            gate,
            reader_options,
            watchers: Arc::default(),
            held: Mutex::default(),
            counters,
            purge_cursor: AtomicI64::new(0),
            file: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Inner {
    fn error(&self, what: &str, error: sqlx::Error) -> Error {
        error::store_error(&self.path, what, error)
    }

    /// A value of a row, or the error of a row that another program wrote.
    fn column<T>(&self, value: std::result::Result<T, sqlx::Error>) -> Result<T> {
        value.map_err(|error| self.error("read a row", error))
    }

    async fn read(&self, statement: &'static str, binds: Binds) -> Result<Vec<Outcome>> {
        self.read_text(self.sql.fixed(statement), binds).await
    }

    async fn read_text(&self, text: Arc<str>, binds: Binds) -> Result<Vec<Outcome>> {
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        let read = async {
            let mut connection = self.readers.acquire().await?;
            run_text(&mut connection, text, binds).await
        };
        read.await.map_err(|error| self.error("read", error))
    }
}

impl EventStore for SqliteStore {
    type Family = Sqlite;
    type Transaction = SqliteTransaction;
    type Session = SqliteSession;

    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::none();
        capabilities.durable = true;
        capabilities.several_processes = true;
        capabilities.completion_history = self.inner.sql.history();
        capabilities.reports_commits = self.inner.can_watch;
        // Every transaction runs as if it were alone, so each level is kept.
        capabilities.isolation_levels = true;
        capabilities
    }

    fn handles(&self) -> &'static [TypeRef] {
        const { &[TypeRef::of::<SqliteTransaction>(), TypeRef::of::<SqliteConnection>()] }
    }

    fn database(&self) -> Option<&Database> {
        Some(&self.inner.database)
    }

    async fn setup(&self) -> Result<()> {
        self.inner.setup().await
    }

    async fn verify(&self) -> Result<()> {
        self.inner.verify().await
    }

    async fn begin(&self, options: &TransactionOptions) -> Result<SqliteTransaction> {
        self.inner.recheck_file()?;
        self.inner.begin(options).await
    }

    async fn append<'c>(&'c self, handle: &'c mut SqliteConnection, batch: &AppendBatch) -> Result<Appended> {
        append::check(batch)?;
        let failed = |error| self.inner.error("store events", error);
        if !transaction::is_open_on(handle).await.map_err(failed)? {
            return Err(append::without_transaction(batch));
        }
        append::append_in(&self.inner.sql, handle, batch).await.map_err(failed)
    }

    async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        append::check(batch)?;
        if batch.events.is_empty() {
            return Ok(Appended::default());
        }
        self.inner.recheck_file()?;
        let failed = |error| self.inner.error("store events", error);
        let calls = append::calls_alone(&self.inner.sql, batch);
        let answers = self.inner.writer.run(calls).await.map_err(failed)?;
        self.inner.watchers.wake();
        append::outcomes_alone(batch, &answers).map_err(failed)
    }

    async fn open_session(&self, request: &SessionRequest) -> Result<SqliteSession> {
        self.inner.recheck_file()?;
        self.inner.open_session(request).await
    }

    async fn turn(&self, session: &mut SqliteSession, request: &TurnRequest<'_>) -> Result<Turn> {
        self.inner.turn(session, request).await
    }

    async fn settle(
        &self,
        session: &mut SqliteSession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        self.inner.settle(session, settlements, now).await
    }

    async fn complete_in(
        &self,
        transaction: &mut SqliteTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        self.inner.complete_in(transaction, completed, now).await
    }

    async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        self.inner.inspect(lease).await
    }

    async fn close_session(&self, session: SqliteSession, _now: Timestamp) -> Result<()> {
        self.inner.close_session(session).await
    }

    async fn list_deliveries(&self, query: &DeliveryQuery, _now: Timestamp) -> Result<DeliveryPage> {
        self.inner.list_deliveries(query).await
    }

    async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        self.inner.requeue(ids, now).await
    }

    async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        self.inner.recheck_file()?;
        self.inner.statistics(now).await
    }

    async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        self.inner.backlog().await
    }

    async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        self.inner.purge(request).await
    }

    async fn watch(&self, wake: WakeUp) -> Result<Option<WatchGuard>> {
        Ok(Some(wakeups::watch(&self.inner.watchers, &self.inner.path, wake)))
    }

    async fn close(&self) -> Result<()> {
        self.inner.writer.close().await;
        self.inner.transactions.close().await;
        self.inner.readers.close().await;
        self.inner.lent_readers.close().await;
        Ok(())
    }

    fn force_close(&self) {
        self.inner.writer.force_close();
        // Marks the pools closed at once; what they are doing ends by itself.
        drop(self.inner.transactions.close());
        drop(self.inner.readers.close());
        drop(self.inner.lent_readers.close());
    }
}
