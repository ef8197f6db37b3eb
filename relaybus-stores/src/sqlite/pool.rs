//! The connections that the application's code gets hold of, and what it must not leave on them.
//!
//! Invariant: a connection that comes back is as it was made, or is closed. A handler may send any statement through its
//! transaction: a `PRAGMA`, a temporary table of the same name as one of ours, an attached file or a `BEGIN` would meet
//! whoever gets the connection next.

use std::sync::{Arc, OnceLock};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePoolOptions};
use sqlx::{Connection, Row, SqlitePool};

use super::args::Binds;
use super::options::CONNECTION_WAIT;
use super::transaction::is_open_on;
use super::writer::run_text;

/// Connections that read, for the store and as many for the application, beside those of the sessions.
const READERS: u32 = 4;
/// Connections for transactions. Only one can write; the others wait for it.
const TRANSACTIONS: u32 = 8;
/// What a statement can change on a connection and a rollback does not undo.
const STATE: &str = "SELECT count(*) FROM sqlite_temp_schema; PRAGMA database_list; PRAGMA query_only; PRAGMA locking_mode; PRAGMA busy_timeout; PRAGMA synchronous; PRAGMA foreign_keys; \
    PRAGMA recursive_triggers; PRAGMA ignore_check_constraints; PRAGMA writable_schema;";

/// The state of one connection, to compare.
type State = Vec<String>;

async fn state_of(connection: &mut SqliteConnection) -> Result<State, sqlx::Error> {
    let outcomes = run_text(connection, STATE.into(), Binds::default()).await?;
    outcomes.iter().flat_map(|outcome| &outcome.rows).map(|row| row.try_get_unchecked(0)).collect()
}

/// Connections for the store's own reads.
pub(super) fn readers(options: SqliteConnectOptions) -> SqlitePool {
    pool(READERS).connect_lazy_with(options)
}

/// Connections for the application's reads.
pub(super) fn lent_readers(options: SqliteConnectOptions) -> SqlitePool {
    watched(READERS, true).connect_lazy_with(options)
}

/// Connections for transactions.
pub(super) fn transactions(options: SqliteConnectOptions) -> SqlitePool {
    // What ends a transaction has ended one that its code began, too.
    watched(TRANSACTIONS, false).connect_lazy_with(options)
}

fn pool(size: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new().max_connections(size).acquire_timeout(CONNECTION_WAIT).test_before_acquire(false)
}

/// Connections that are compared with their first state when they come back.
fn watched(size: u32, may_be_open: bool) -> SqlitePoolOptions {
    // All are made with the same options, so the first tells for all.
    let made: Arc<OnceLock<State>> = Arc::default();
    let first = Arc::clone(&made);
    pool(size)
        .after_connect(move |connection, _| {
            let first = Arc::clone(&first);
            Box::pin(async move {
                if first.get().is_none() {
                    let _ = first.set(state_of(connection).await?);
                }
                Ok(())
            })
        })
        .after_release(move |connection, _| {
            let made = Arc::clone(&made);
            Box::pin(async move {
                // Comes after the end of the transaction before, which may still be on its way to the connection.
                let state = state_of(connection).await?;
                // A connection whose rollback failed believes in a transaction that SQLite has ended.
                let open = connection.is_in_transaction() || (may_be_open && is_open_on(connection).await?);
                Ok(!open && Some(&state) == made.get())
            })
        })
}
