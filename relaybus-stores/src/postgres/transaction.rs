//! Transactions that the store opens.
//!
//! Invariant: a transaction ends as a whole, and never leaves an open one in the pool.
//!
//! Faults and what stops them:
//! - *A dropped `begin`*: the client forgets a transaction whose `BEGIN` was under way and gives its connection back with it
//!   open. So `BEGIN` runs in a task of its own to its end; dropped by its caller, its transaction rolls back.
//! - *A statement failed and nobody looked*: PostgreSQL answers `COMMIT` of a failed transaction with success, and the client
//!   does not show that it rolled back. So the commit begins with a statement that fails there.
//! - *Its code ends it*, by a `COMMIT` or `ROLLBACK` of its own, and may begin another: the completion of its delivery would
//!   commit by itself, without the effects. So `BEGIN` leaves a mark, a setting that lasts as long as the transaction;
//!   completing a delivery and the commit look for it in their own statements. What is published between such an end and the
//!   commit is stored all the same, which the statement that stores it cannot know; the error of the commit tells of the end.
//! - *A call of the store on it is dropped midway*: it can no longer be committed.
//!
//! The commit is one round trip: it chains an empty transaction, which the client's own rollback ends while the connection
//! goes back to the pool.

use std::any::{Any, TypeId};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use relaybus::store::{
    AppendBatch, CommitError, HandleOf, IsolationLevel, Lends, StoreTransaction, TransactionOptions,
};
use relaybus::{BoxError, Error, Result};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Postgres};

use super::Inner;
use super::background::to_its_end;
use super::error::{budget_error, is_connection_lost, is_disconnect, is_outside, lacks_mark, store_error};
use super::handle::{Kind, PgHandle, PostgreSql};
use super::wakeups::Wakeups;

/// Marks the transaction. It goes with its end, whoever ends it; no savepoint undoes it, for it is older than all.
const MARK: &str = "SET LOCAL relaybus.transaction = 'open'";
/// Fails in a transaction that has failed, and where the mark is gone; else commits and opens an empty one.
const COMMIT: &str = "SELECT CASE WHEN current_setting('relaybus.transaction', true) IS DISTINCT FROM 'open' \
    THEN current_setting('relaybus.transaction_has_ended') END; COMMIT AND CHAIN";
/// Fails where no transaction is open.
const PROBE: &str = "SAVEPOINT relaybus_probe; RELEASE relaybus_probe";
/// First version whose `transaction_timeout` ends a whole transaction.
const TRANSACTION_TIMEOUT_SINCE: u32 = 17;

/// What happened in a transaction.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Something due at once was stored: others are woken after the commit.
    pub(super) published: bool,
    /// A call of the store is under way; found at its end, the call was dropped.
    pub(super) running: bool,
}

/// A transaction of a [`super::PostgresStore`]: use it as the sqlx connection it stands for. Dropping it rolls back.
pub struct PgTransaction {
    transaction: sqlx::Transaction<'static, Postgres>,
    marks: Marks,
    budget: Option<Duration>,
    /// Its connection is gone.
    lost: bool,
    wakeups: Arc<Wakeups>,
}

impl fmt::Debug for PgTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgTransaction").field("marks", &self.marks).finish_non_exhaustive()
    }
}

impl Deref for PgTransaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.transaction
    }
}

impl DerefMut for PgTransaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }
}

impl HandleOf<PostgreSql> for PgTransaction {
    fn handle(&mut self) -> PgHandle<'_> {
        PgHandle(Kind::Own(&mut self.transaction, &mut self.marks))
    }
}

impl Lends<PgConnection> for PostgreSql {}

impl Lends<PgTransaction> for PostgreSql {}

impl Inner {
    pub(super) async fn begin(&self, options: &TransactionOptions) -> Result<PgTransaction> {
        self.work().await?;
        let text = begin_text(options, self.server_version());
        let pool = self.pool.clone();
        let begun = to_its_end(async move { pool.begin_with(AssertSqlSafe(text)).await }).await;
        let begun = begun.ok_or_else(|| Error::store("the runtime ended while a transaction was opened", None))?;
        let transaction = begun.map_err(|error| store_error("open a transaction", error))?;
        Ok(PgTransaction {
            transaction,
            marks: Marks::default(),
            budget: options.budget,
            lost: false,
            wakeups: Arc::clone(&self.wakeups),
        })
    }
}

/// `BEGIN` with the level, the mark and the budget, in one message. The budget is the transaction's own: the session's settings stay.
fn begin_text(options: &TransactionOptions, version: u32) -> String {
    let level = match options.isolation {
        None => "",
        Some(IsolationLevel::ReadCommitted) => " ISOLATION LEVEL READ COMMITTED",
        Some(IsolationLevel::RepeatableRead) => " ISOLATION LEVEL REPEATABLE READ",
        Some(IsolationLevel::Serializable) => " ISOLATION LEVEL SERIALIZABLE",
    };
    let mut text = format!("BEGIN{level}; {MARK}");
    if let Some(budget) = options.budget {
        let millis = budget.as_millis().clamp(1, 2_147_483_647);
        let mut limit = |name: &str| text.push_str(&format!("; SET LOCAL {name} = {millis}"));
        limit("statement_timeout");
        limit("idle_in_transaction_session_timeout");
        if version >= TRANSACTION_TIMEOUT_SINCE {
            limit("transaction_timeout");
        }
    }
    text
}

impl PgTransaction {
    /// The connection in it, for sqlx: `query.execute(tx.connection()).await`.
    ///
    /// It is one of the store's: do not end the transaction on it.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// The connection, for a call of the store that must not be dropped midway.
    pub(super) fn start(&mut self) -> Result<&mut PgConnection> {
        if self.marks.running {
            return Err(unusable());
        }
        self.marks.running = true;
        Ok(&mut self.transaction)
    }

    pub(super) fn finish(&mut self) {
        self.marks.running = false;
    }

    /// The error of a call of the store on it.
    pub(super) fn error(&mut self, what: &str, error: sqlx::Error) -> Error {
        self.lost |= is_connection_lost(&error);
        budget_error(what, self.budget, error)
    }
}

/// The error of a transaction that its own code ended before the store did.
pub(super) fn ended_early(source: Option<BoxError>) -> Error {
    Error::store(
        "the transaction had ended before the bus could commit it, by a `COMMIT` or `ROLLBACK` of its own code: leave its end to the bus, and return errors",
        source,
    )
}

/// Refuses a connection of the application on which no transaction is open: the event would be committed by itself.
///
/// The client knows of transactions that it began, which costs nothing. Of those that were begun by a text of the
/// application's own the server is asked. Other clients lend their transactions, and are not asked.
pub(super) async fn require_open(handle: &mut PgHandle<'_>, batch: &AppendBatch) -> Result<()> {
    let (Kind::Sqlx(connection), Some(event)) = (&mut handle.0, batch.events.first()) else { return Ok(()) };
    if connection.is_in_transaction() {
        return Ok(());
    }
    match sqlx::raw_sql(PROBE).execute(&mut **connection).await {
        Ok(_) => Ok(()),
        Err(error) if is_outside(&error) => Err(Error::TransactionRequired {
            message: format!(
                "the connection that `{}` is published through has no open transaction: begin one on it, or use `publish_detached`",
                event.envelope.event_type
            ),
        }),
        Err(error) => Err(store_error("store events", error)),
    }
}

pub(super) fn unusable() -> Error {
    Error::store("a call on the transaction was dropped before its end, so it was rolled back: await its calls", None)
}

impl StoreTransaction for PgTransaction {
    async fn commit(self) -> std::result::Result<(), CommitError> {
        let Self { mut transaction, marks, budget, wakeups, .. } = self;
        if marks.running {
            return Err(CommitError::RolledBack(unusable()));
        }
        match sqlx::raw_sql(COMMIT).execute(&mut *transaction).await {
            Ok(_) => {
                drop(transaction);
                if marks.published {
                    wakeups.published();
                }
                Ok(())
            }
            Err(error) if lacks_mark(&error) => Err(CommitError::RolledBack(ended_early(Some(Box::new(error))))),
            Err(error) => {
                let doubt = is_disconnect(&error);
                let error = budget_error("commit a transaction", budget, error);
                Err(if doubt { CommitError::InDoubt(error) } else { CommitError::RolledBack(error) })
            }
        }
    }

    async fn rollback(self) -> Result<()> {
        // When the server has ended it, nothing is left to undo; a connection in doubt is closed by the pool.
        let _ = self.transaction.rollback().await;
        Ok(())
    }

    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)> {
        if wanted == TypeId::of::<Self>() {
            return Some(self);
        }
        if wanted == TypeId::of::<PgConnection>() {
            let connection: &mut PgConnection = &mut self.transaction;
            return Some(connection);
        }
        None
    }

    fn is_lost(&self) -> bool {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_and_the_budget_travel_with_begin() {
        let mut options = TransactionOptions::default();
        assert_eq!(begin_text(&options, 17), "BEGIN; SET LOCAL relaybus.transaction = 'open'");
        options.isolation = Some(IsolationLevel::Serializable);
        options.budget = Some(Duration::from_millis(1500));
        assert_eq!(
            begin_text(&options, 15),
            "BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL relaybus.transaction = 'open'; SET LOCAL statement_timeout = 1500; \
             SET LOCAL idle_in_transaction_session_timeout = 1500"
        );
        assert!(begin_text(&options, 17).ends_with("; SET LOCAL transaction_timeout = 1500"));
    }
}
