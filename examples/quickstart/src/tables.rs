//! The example's own tables, in the database beside those of the store (here in SQLite; `postgres` is much the same), or in
//! memory.
//!
//! Everything is written through the transaction of the caller, so that it commits with the event that is published, or
//! with the delivery that is completed, or not at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use relaybus::memory::MemoryTransaction;
#[cfg(feature = "postgres")]
use relaybus::store::IsolationLevel;
use relaybus::store::TypeRef;
use relaybus::{
    AnyTransaction, BoxError, Error, FromDelivery, HandlerContext, Needs, Parts, RelayBus, State, Timestamp,
};
use relaybus_stores::sqlite::SqliteTransaction;
use sqlx::Row;

#[cfg(feature = "postgres")]
use crate::postgres;

pub type Result<T = (), E = BoxError> = std::result::Result<T, E>;

/// Where the tables are.
#[derive(Clone, Debug)]
pub enum Tables {
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
    Memory(Arc<Mutex<Rows>>),
}

/// What is in the tables.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// One row a line that was imported, in the order of their commits.
    pub webhooks: Vec<WebhookRow>,
    /// The projection: how many events a repository has of a type.
    pub activity: BTreeMap<(String, String), i64>,
    /// The order log: one row each time a handler did its work, in the order of their commits.
    pub log: Vec<LogRow>,
}

#[derive(Clone, Debug)]
pub struct WebhookRow {
    pub event_id: String,
    pub line: i64,
    /// Empty without a repository.
    pub repository: String,
    pub kind: String,
}

#[derive(Clone, Debug)]
pub struct LogRow {
    pub handler: String,
    pub event_id: String,
    pub attempt: i64,
    /// From the storing of the event to the start of the handler, in microseconds.
    pub latency: i64,
    pub note: String,
}

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS webhooks (n INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, line INTEGER NOT NULL,
    repository TEXT NOT NULL, type TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS activity (repository TEXT NOT NULL, type TEXT NOT NULL, events INTEGER NOT NULL,
    PRIMARY KEY (repository, type)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS order_log (n INTEGER PRIMARY KEY, handler TEXT NOT NULL, event_id TEXT NOT NULL,
    attempt INTEGER NOT NULL, latency INTEGER NOT NULL, note TEXT NOT NULL) STRICT;";
pub const ADD_WEBHOOK: &str = "INSERT INTO webhooks (event_id, line, repository, type) VALUES ($1, $2, $3, $4)";
pub const COUNT: &str = "INSERT INTO activity (repository, type, events) VALUES ($1, $2, 1)
    ON CONFLICT (repository, type) DO UPDATE SET events = activity.events + 1";
pub const LOG: &str = "INSERT INTO order_log (handler, event_id, attempt, latency, note) VALUES ($1, $2, $3, $4, $5)";
pub const READ_WEBHOOKS: &str = "SELECT event_id, line, repository, type FROM webhooks ORDER BY n";
pub const READ_ACTIVITY: &str = "SELECT repository, type, events FROM activity";
pub const READ_LOG: &str = "SELECT handler, event_id, attempt, latency, note FROM order_log ORDER BY n";

impl Tables {
    /// Creates them, unless they are there.
    pub async fn create(&self, bus: &RelayBus) -> Result {
        bus.transaction(async |tx| -> Result {
            match self {
                Self::Sqlite => {
                    sqlx::raw_sql(CREATE).execute(sqlite(tx)?.connection()).await?;
                }
                #[cfg(feature = "postgres")]
                Self::Postgres => postgres::create(tx).await?,
                Self::Memory(_) => {}
            }
            Ok(())
        })
        .await
    }

    /// Adds the row of a line.
    pub async fn add_webhook(&self, tx: &mut AnyTransaction, row: WebhookRow) -> Result {
        match self {
            Self::Sqlite => {
                let add =
                    sqlx::query(ADD_WEBHOOK).bind(row.event_id).bind(row.line).bind(row.repository).bind(row.kind);
                add.execute(sqlite(tx)?.connection()).await?;
            }
            #[cfg(feature = "postgres")]
            Self::Postgres => postgres::add_webhook(tx, row).await?,
            Self::Memory(rows) => on_commit(tx, rows, |rows| rows.webhooks.push(row))?,
        }
        Ok(())
    }

    async fn count(&self, tx: &mut AnyTransaction, repository: &str, kind: &str) -> Result {
        match self {
            Self::Sqlite => {
                sqlx::query(COUNT).bind(repository).bind(kind).execute(sqlite(tx)?.connection()).await?;
            }
            #[cfg(feature = "postgres")]
            Self::Postgres => postgres::count(tx, repository, kind).await?,
            Self::Memory(rows) => {
                let counted = (repository.to_owned(), kind.to_owned());
                on_commit(tx, rows, |rows| *rows.activity.entry(counted).or_default() += 1)?;
            }
        }
        Ok(())
    }

    async fn log(&self, tx: &mut AnyTransaction, row: LogRow) -> Result {
        match self {
            Self::Sqlite => {
                let log = sqlx::query(LOG).bind(row.handler).bind(row.event_id).bind(row.attempt);
                log.bind(row.latency).bind(row.note).execute(sqlite(tx)?.connection()).await?;
            }
            #[cfg(feature = "postgres")]
            Self::Postgres => postgres::log(tx, row).await?,
            Self::Memory(rows) => on_commit(tx, rows, |rows| rows.log.push(row))?,
        }
        Ok(())
    }

    /// Everything in them, as of one moment.
    pub async fn read(&self, bus: &RelayBus) -> Result<Rows> {
        match self {
            Self::Sqlite => bus.transaction(async |tx| read(sqlite(tx)?).await).await,
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                bus.transaction_at(IsolationLevel::RepeatableRead, 1, async |tx| postgres::read(tx).await).await
            }
            Self::Memory(rows) => Ok(rows.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        }
    }
}

async fn read(tx: &mut SqliteTransaction) -> Result<Rows> {
    let mut rows = Rows::default();
    for row in sqlx::query(READ_WEBHOOKS).fetch_all(tx.connection()).await? {
        let [event_id, repository, kind] = [row.try_get(0)?, row.try_get(2)?, row.try_get(3)?];
        rows.webhooks.push(WebhookRow { event_id, line: row.try_get(1)?, repository, kind });
    }
    for row in sqlx::query(READ_ACTIVITY).fetch_all(tx.connection()).await? {
        rows.activity.insert((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?);
    }
    for row in sqlx::query(READ_LOG).fetch_all(tx.connection()).await? {
        let [handler, event_id, note] = [row.try_get(0)?, row.try_get(1)?, row.try_get(4)?];
        rows.log.push(LogRow { handler, event_id, attempt: row.try_get(2)?, latency: row.try_get(3)?, note });
    }
    Ok(rows)
}

fn sqlite(tx: &mut AnyTransaction) -> Result<&mut SqliteTransaction> {
    tx.downcast_mut().ok_or_else(|| "expected a transaction of the SQLite store".into())
}

/// The in-memory store has no tables: it changes our rows as part of its commit.
fn on_commit(
    tx: &mut AnyTransaction,
    rows: &Arc<Mutex<Rows>>,
    change: impl FnOnce(&mut Rows) + Send + 'static,
) -> Result {
    let tx: &mut MemoryTransaction = tx.downcast_mut().ok_or("expected a transaction of the in-memory store")?;
    let rows = rows.clone();
    tx.on_commit(move || change(&mut rows.lock().unwrap_or_else(PoisonError::into_inner)));
    Ok(())
}

/// What a handler writes to the tables. It is a handler's argument of our own: anything that implements `FromDelivery` is.
#[derive(Debug)]
pub struct Ledger {
    tables: State<Tables>,
    repository: String,
    row: LogRow,
}

impl<'p, E> FromDelivery<'p, E> for Ledger {
    /// Without the tables, the bus does not start.
    const NEEDS: Needs = Needs::State(TypeRef::of::<Tables>());

    fn from_delivery(parts: &mut Parts<'p>) -> relaybus::Result<Self> {
        let context: &HandlerContext = parts.context();
        let latency = Timestamp::from(SystemTime::now()).since(context.stored_at());
        let row = LogRow {
            handler: context.handler().to_string(),
            event_id: context.event_id().to_string(),
            attempt: context.attempt().into(),
            latency: i64::try_from(latency.as_micros()).unwrap_or(i64::MAX),
            note: String::new(),
        };
        Ok(Self { tables: parts.state()?, repository: context.key().map(ToString::to_string).unwrap_or_default(), row })
    }
}

impl Ledger {
    /// Counts the event in the projection, and logs `note`.
    pub async fn count(self, tx: &mut AnyTransaction, kind: &str, note: String) -> relaybus::Result {
        let counted = self.tables.count(tx, &self.repository, kind).await;
        counted.map_err(|source| Error::Handler { source })?;
        self.log(tx, note).await
    }

    /// Logs `note`: the handler did its work on this event.
    pub async fn log(self, tx: &mut AnyTransaction, note: String) -> relaybus::Result {
        let logged = self.tables.log(tx, LogRow { note, ..self.row }).await;
        logged.map_err(|source| Error::Handler { source })
    }
}
