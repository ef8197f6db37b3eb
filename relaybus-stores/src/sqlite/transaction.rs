//! Transactions that the store opens, and the handles its statements run through.
//!
//! Invariant: a transaction ends as a whole. It begins with `BEGIN IMMEDIATE`, so it never fails for having read first,
//! and goes through the gate like every write of the store. Dropped, it rolls back.
//!
//! Faults and what stops them:
//! - *The disk fills up inside it*: SQLite rolls back by itself, and the next statement would commit on its own. After such
//!   an error the transaction runs nothing more, and its connection is closed. The error may have met a statement of the
//!   application, which the store does not see: so completing a delivery first releases a savepoint that this transaction
//!   made and that went with the rollback; the commit fails too.
//! - *Its code ends it*, by a `COMMIT` or `ROLLBACK` of its own: noticed in the same way.
//! - *Its code changes the connection*, by a `PRAGMA` or a temporary table: such a connection is closed; see `pool`.
//! - *A call of the store on it is dropped midway*: it can no longer be committed.

use std::any::{Any, TypeId};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Arc;

use relaybus::store::{CommitError, Database, Family, HandleOf, Lends, StoreTransaction, TransactionOptions};
use relaybus::{Error, Result};
use sqlx::Connection;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqliteConnection;

use super::Inner;
use super::args::Binds;
use super::error::{ends_transaction, in_doubt, is_missed, is_over, is_plain, refuse_inside, store_error};
use super::gate::Pass;
use super::wakeups::Watchers;
use super::writer::run_text;

const BEGIN: &str = "BEGIN IMMEDIATE";
/// Begins a handler's transaction, with a savepoint that ends with it: releasing it tells that the transaction is still this
/// one. It makes large transactions a tenth to a fifth slower, so others do without: their commit tells.
const BEGIN_WATCHED: &str = "BEGIN IMMEDIATE; SAVEPOINT relaybus_transaction";
/// Comes before the completion of a delivery: fails when the transaction has ended.
pub(super) const STILL_OPEN: &str = "RELEASE relaybus_transaction;\nSAVEPOINT relaybus_transaction;\n";

/// The family of SQLite's handles: sqlx's connections and transactions.
#[derive(Debug)]
pub enum Sqlite {}

impl Family for Sqlite {
    type Handle<'c> = &'c mut SqliteConnection;
    const NAME: &'static str = "SQLite";
}

impl Lends<SqliteConnection> for Sqlite {}

impl Lends<SqliteTransaction> for Sqlite {}

impl HandleOf<Sqlite> for SqliteConnection {
    fn handle(&mut self) -> &mut SqliteConnection {
        self
    }
}

impl HandleOf<Sqlite> for sqlx::Transaction<'_, sqlx::Sqlite> {
    fn handle(&mut self) -> &mut SqliteConnection {
        self
    }
}

impl HandleOf<Sqlite> for PoolConnection<sqlx::Sqlite> {
    fn handle(&mut self) -> &mut SqliteConnection {
        self
    }
}

impl HandleOf<Sqlite> for SqliteTransaction {
    fn handle(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    fn database(&self) -> Option<&Database> {
        Some(&self.database)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A call of the store is under way; found at its end, the call was dropped.
    Running,
    /// SQLite may have ended it by itself.
    Failed,
}

/// A transaction of a [`super::SqliteStore`]: use it as the sqlx connection it stands for.
///
/// It holds the file's only write lock: keep it short. After an error that says that the disk is full or failed, return
/// the error and let it roll back: SQLite has already done so.
pub struct SqliteTransaction {
    /// Rolls back when dropped. A connection whose rollback fails is closed when it comes back to the pool.
    transaction: sqlx::Transaction<'static, sqlx::Sqlite>,
    state: State,
    /// Whether it has the savepoint.
    is_watched: bool,
    path: Arc<PathBuf>,
    database: Database,
    watchers: Arc<Watchers>,
    pass: Pass,
}

impl fmt::Debug for SqliteTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTransaction").field("state", &self.state).finish()
    }
}

impl Deref for SqliteTransaction {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.transaction
    }
}

impl DerefMut for SqliteTransaction {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }
}

impl Inner {
    pub(super) async fn begin(&self, options: &TransactionOptions) -> Result<SqliteTransaction> {
        refuse_inside(&self.database).map_err(|error| self.error("open a transaction", error))?;
        let pass = self.gate.enter().await;
        let transaction = self.transactions.begin_with(if options.completes { BEGIN_WATCHED } else { BEGIN }).await;
        let transaction = transaction.map_err(|error| self.error("open a transaction", error))?;
        Ok(SqliteTransaction {
            transaction,
            state: State::Open,
            is_watched: options.completes,
            path: Arc::clone(&self.path),
            database: self.database.clone(),
            watchers: Arc::clone(&self.watchers),
            pass,
        })
    }
}

/// Whether a transaction is open on the connection, begun by the client or by a `BEGIN` of the application's own.
///
/// The client knows of its own. Of others only SQLite knows: it refuses to begin a second one.
pub(super) async fn is_open_on(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        return Ok(true);
    }
    // Begun by the client's own means, so that it is rolled back when this future is dropped.
    match connection.begin().await {
        Ok(probe) => probe.rollback().await.map(|()| false),
        Err(error) if is_plain(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

impl SqliteTransaction {
    /// The connection in it, for sqlx: `query.execute(tx.connection()).await`.
    ///
    /// It is one of the store's: do not end the transaction on it, and expect that a connection whose settings were changed
    /// is closed afterwards.
    pub fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    pub(super) fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Runs the text that completes a delivery in it; false when the lease is gone.
    pub(super) async fn complete(&mut self, text: Arc<str>, binds: Binds) -> Result<bool> {
        if self.state != State::Open {
            return Err(self.unusable());
        }
        self.state = State::Running;
        match run_text(&mut self.transaction, text, binds).await {
            Ok(_) => {
                self.state = State::Open;
                Ok(true)
            }
            Err(error) if is_missed(&error) => {
                self.state = State::Open;
                Ok(false)
            }
            Err(error) if is_over(&error) => {
                self.state = State::Failed;
                Err(ended_early(error))
            }
            Err(error) => {
                self.state = if ends_transaction(&error) { State::Failed } else { State::Open };
                Err(store_error(&self.path, "use a transaction", error))
            }
        }
    }

    fn unusable(&self) -> Error {
        Error::store(
            match self.state {
                State::Running => {
                    "a call on the transaction was dropped before its end, so it was rolled back: await its calls"
                }
                _ => {
                    "the transaction was rolled back after an earlier error: return that error, and run the whole of it again"
                }
            },
            None,
        )
    }
}

/// The error of a transaction that its own code, or an error of the disk, ended before the store did.
fn ended_early(error: sqlx::Error) -> Error {
    Error::store(
        "the transaction had ended before the bus could commit it, by a `COMMIT` or `ROLLBACK` of its own code or after an error of the disk: leave its end to the bus, and return errors",
        Some(Box::new(error)),
    )
}

impl StoreTransaction for SqliteTransaction {
    async fn commit(self) -> std::result::Result<(), CommitError> {
        if self.state != State::Open {
            return Err(CommitError::RolledBack(self.unusable()));
        }
        let Self { transaction, path, watchers, pass, .. } = self;
        match transaction.commit().await {
            Ok(()) => {
                drop(pass);
                watchers.wake();
                Ok(())
            }
            Err(error) if is_over(&error) => Err(CommitError::RolledBack(ended_early(error))),
            Err(error) => {
                let doubt = in_doubt(&error);
                let error = store_error(&path, "commit a transaction", error);
                Err(if doubt { CommitError::InDoubt(error) } else { CommitError::RolledBack(error) })
            }
        }
    }

    async fn rollback(self) -> Result<()> {
        let Self { transaction, pass, .. } = self;
        // When SQLite has rolled back by itself this fails, and nothing is left to undo.
        let _ = transaction.rollback().await;
        drop(pass);
        Ok(())
    }

    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)> {
        if wanted == TypeId::of::<Self>() {
            return Some(self);
        }
        if wanted == TypeId::of::<SqliteConnection>() {
            let connection: &mut SqliteConnection = &mut self.transaction;
            return Some(connection);
        }
        None
    }

    fn database(&self) -> Option<&Database> {
        Some(&self.database)
    }
}
