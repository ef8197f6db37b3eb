//! How a store is opened: a URL or a pool, the schema, the names of its tables, how it wakes and is woken.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use relaybus::{Error, Result};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use super::PostgresStore;
use super::args::learn_types;
use super::pooler::{Reach, Way};
use super::sql::{LONGEST_SUFFIX, Names};

/// Schema of the tables without one of your own.
pub const DEFAULT_SCHEMA: &str = "public";
/// Prefix of the tables without one of your own.
pub const DEFAULT_TABLE_PREFIX: &str = "relaybus_";
/// Connections of a pool that the store opens, without a number of your own.
pub const DEFAULT_CONNECTIONS: u32 = 10;
/// Rows that one transaction of a purge deletes, without a number of your own.
pub const DEFAULT_PURGE_BATCH: usize = 1_000;
/// How long after its expiry a session is taken over at the earliest, without a margin of your own.
pub const DEFAULT_TAKEOVER_MARGIN: Duration = Duration::from_secs(1);
/// Longest name in PostgreSQL, in bytes.
const MAX_NAME: usize = 63;
/// How long a call waits for a free connection.
pub(super) const CONNECTION_WAIT: Duration = Duration::from_secs(10);
/// Connections for the store's own statements that belong to no session: lists, purges, look-ups.
pub(super) const WORK_CONNECTIONS: u32 = 4;
/// An idle connection is tested before it is used again after this time.
const TEST_AFTER: Duration = Duration::from_secs(1);

/// How the publishers of other processes wake this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WakeUpMode {
    /// `NOTIFY` and `LISTEN`, coalesced. The default.
    #[default]
    Notify,
    /// Nothing is sent or listened for: other processes find work when they poll. For a pooler in transaction mode, where the
    /// store listens for nothing in any mode.
    Poll,
}

/// Where the database is.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Url(String),
    Options(Box<PgConnectOptions>),
    Pool(PgPool),
}

/// The options of a [`PostgresStore`]; made by [`PostgresStore::builder`].
#[derive(Clone, Debug)]
#[must_use = "call `build` to open the store"]
pub struct PostgresStoreBuilder {
    source: Source,
    pub(super) schema: String,
    pub(super) prefix: String,
    pub(super) history: bool,
    pub(super) purge_batch: usize,
    pub(super) prepared: bool,
    pub(super) wake_up: WakeUpMode,
    pub(super) margin: Duration,
    /// What brings tables of older versions to this one.
    pub(super) steps: &'static [&'static str],
    connections: u32,
}

impl PostgresStoreBuilder {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            schema: DEFAULT_SCHEMA.to_owned(),
            prefix: DEFAULT_TABLE_PREFIX.to_owned(),
            history: false,
            purge_batch: DEFAULT_PURGE_BATCH,
            prepared: true,
            wake_up: WakeUpMode::default(),
            margin: DEFAULT_TAKEOVER_MARGIN,
            steps: super::setup::STEPS,
            connections: DEFAULT_CONNECTIONS,
        }
    }

    /// The schema of the tables: small letters, digits and `_`. Created by `setup` when it is not there. Defaults to `public`.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// The prefix of the tables: small letters, digits and `_`. Defaults to `relaybus_`.
    ///
    /// Stores with different prefixes share a schema without seeing each other's events.
    pub fn table_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Whether to keep a record of every completed delivery. Defaults to `false`; give the same in every process.
    pub fn completion_history(mut self, keep: bool) -> Self {
        self.history = keep;
        self
    }

    /// Rows that one transaction of a purge deletes at most. Defaults to 1000.
    pub fn purge_batch(mut self, rows: usize) -> Self {
        self.purge_batch = rows.max(1);
        self
    }

    /// Whether statements are prepared once a connection. Defaults to `true`; `false` behind a pooler in transaction mode
    /// that does not keep them (PgBouncer before 1.21, or with `max_prepared_statements = 0`). If you forget, the store finds
    /// out before its first statement, prepares none and warns.
    pub fn prepared_statements(mut self, prepare: bool) -> Self {
        self.prepared = prepare;
        self
    }

    /// How other processes are woken. Defaults to [`WakeUpMode::Notify`].
    pub fn wake_up(mut self, mode: WakeUpMode) -> Self {
        self.wake_up = mode;
        self
    }

    /// How long after its expiry a dead worker's session is taken over at the earliest: more than any two processes' clocks
    /// differ. Defaults to one second.
    pub fn takeover_margin(mut self, margin: Duration) -> Self {
        self.margin = margin;
        self
    }

    /// Most connections of the pool that the store opens. Defaults to 10; without meaning for a pool of yours.
    ///
    /// Beside it the store uses up to four for its own statements, one a dispatcher, two for wake-ups, and two for publishes without
    /// a transaction.
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// More versions behind this one, for the test of upgrades.
    #[doc(hidden)]
    pub fn upgraded_by(mut self, steps: &'static [&'static str]) -> Self {
        self.steps = steps;
        self
    }

    /// Opens the store. Nothing is connected yet: the first call does.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when the URL, the schema or the prefix is not valid, and outside of a Tokio runtime.
    pub fn build(self) -> Result<PostgresStore> {
        self.check()?;
        // The URL first: whoever got that wrong should read about it.
        self.connection()?;
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::configuration(
                "the PostgreSQL store was built outside of a Tokio runtime: build it within `async` code of your program",
            ));
        }
        PostgresStore::open(self)
    }

    /// The statements that create the tables or upgrade older ones, one text, for your own migration tool. Run it as one
    /// transaction.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when the schema or the prefix is not valid.
    pub fn schema_sql(&self) -> Result<String> {
        self.check()?;
        Ok(super::setup::schema_sql(&self.names(), self.history, self.steps))
    }

    pub(super) fn names(&self) -> Names {
        Names { schema: self.schema.clone(), prefix: self.prefix.clone() }
    }

    fn check(&self) -> Result<()> {
        check_name("schema", &self.schema, MAX_NAME)?;
        check_name("table prefix", &self.prefix, MAX_NAME - LONGEST_SUFFIX)
    }

    /// The pool for transactions and publishing, and whether it is the store's own.
    pub(super) fn pool(&self, way: &Arc<Way>) -> Result<(PgPool, bool)> {
        match &self.source {
            Source::Pool(pool) => Ok((pool.clone(), false)),
            Source::Url(_) | Source::Options(_) => {
                Ok((self.own_pool(self.connections, self.connection()?, way, Way::note_opened), true))
            }
        }
    }

    /// The pool for the store's own statements. What it opens it opens to ask, so nothing that is known gets older by it.
    pub(super) fn work_pool(&self, way: &Arc<Way>) -> Result<PgPool> {
        Ok(self.own_pool(WORK_CONNECTIONS, self.connection()?, way, |_| {}))
    }

    pub(super) fn connection(&self) -> Result<PgConnectOptions> {
        let options = match &self.source {
            Source::Url(url) => read_url(url)?,
            Source::Options(options) => options.as_ref().clone(),
            Source::Pool(pool) => pool.connect_options().as_ref().clone(),
        };
        Ok(options)
    }

    fn own_pool(&self, connections: u32, options: PgConnectOptions, way: &Arc<Way>, opened: fn(&Way)) -> PgPool {
        let way = Arc::clone(way);
        PgPoolOptions::new()
            .after_connect(move |connection, _| {
                opened(&way);
                let prepared = way.reach().prepared;
                Box::pin(async move { if prepared { Ok(()) } else { learn_types(connection).await } })
            })
            .max_connections(connections)
            .acquire_timeout(CONNECTION_WAIT)
            // A test costs a round trip: only what was idle for a while is tested.
            .test_before_acquire(false)
            .before_acquire(|connection, idle| {
                Box::pin(async move {
                    if idle.idle_for > TEST_AFTER {
                        sqlx::Connection::ping(connection).await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options)
    }
}

/// The options of a connection of the store's own: with `settings` where they last, and able to prepare where that lasts.
pub(super) fn reached(options: PgConnectOptions, reach: Reach, settings: &[(&str, &str)]) -> PgConnectOptions {
    let options =
        if reach.settings { options.options(settings.iter().copied()) } else { super::pooler::plain(options) };
    if reach.prepared { options } else { options.statement_cache_capacity(0) }
}

/// The cause of a failure may quote the URL, which may hold a password: it is not told.
fn read_url(url: &str) -> Result<PgConnectOptions> {
    let schemes = ["postgres://", "postgresql://"];
    let ours =
        schemes.iter().any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    ours.then(|| PgConnectOptions::from_str(url).ok()).flatten().ok_or_else(|| {
        Error::configuration(
            "the URL of the PostgreSQL store cannot be read: write `postgres://user:password@host:port/database`",
        )
    })
}

fn check_name(what: &str, name: &str, longest: usize) -> Result<()> {
    let letters = |c: char| c.is_ascii_lowercase() || c == '_';
    let valid = name.len() <= longest
        && name.starts_with(letters)
        && name.chars().all(|c| letters(c) || c.is_ascii_digit())
        && !(what == "schema" && name.starts_with("pg_"));
    if valid {
        return Ok(());
    }
    let shown: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
    Err(Error::configuration(format!(
        "`{shown}` is not a {what}: use 1 to {longest} small letters, digits and `_`, not starting with a digit"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &str, prefix: &str) -> Result<()> {
        PostgresStoreBuilder::new(Source::Url("postgres://h/d".to_owned())).schema(schema).table_prefix(prefix).check()
    }

    #[test]
    fn names_are_checked() {
        for good in ["mybus", "_x", "a1", &"s".repeat(63)] {
            assert!(of(good, "relaybus_").is_ok(), "{good}");
        }
        for bad in ["", "MyBus", "my-bus", "1bus", "pg_x", "a\"b", "é", "a b", &"s".repeat(64)] {
            assert_eq!(of(bad, "relaybus_").unwrap_err().code(), "RELAYBUS_CONFIGURATION", "{bad}");
        }
        assert!(of("public", &"p".repeat(MAX_NAME - LONGEST_SUFFIX)).is_ok());
        assert!(of("public", &"p".repeat(MAX_NAME - LONGEST_SUFFIX + 1)).is_err());
    }

    #[test]
    fn a_bad_url_is_refused_without_showing_it() {
        for url in ["mysql://app:secret@h/d", "postgres://app:secret@h:port/d", "secret", ""] {
            let error = PostgresStore::builder(url).build().unwrap_err().to_string();
            assert!(error.contains("cannot be read") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn outside_of_a_runtime_it_is_an_error() {
        let error = PostgresStore::builder("postgresql://h/d").build().unwrap_err();
        assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
        assert!(error.to_string().contains("Tokio runtime"), "{error}");
    }
}
