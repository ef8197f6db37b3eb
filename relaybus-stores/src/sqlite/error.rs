//! How SQLite's errors become the bus's: one message that names the file and says what to do.
//!
//! Extended result codes decide. A code that ends or poisons a transaction on SQLite's side is told apart by
//! [`ends_transaction`]: after it a connection runs nothing more and is closed, because SQLite may have rolled back
//! without the client knowing, and the next statement would commit on its own.

use std::path::Path;

use relaybus::Error;
use relaybus::store::Database;

const PLAIN: u32 = 1;
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const NOMEM: u32 = 7;
const READONLY: u32 = 8;
const INTERRUPT: u32 = 9;
const IOERR: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const TOOBIG: u32 = 18;
const NOTADB: u32 = 26;
/// A trigger raised an error.
const CONSTRAINT_TRIGGER: u32 = 1811;
/// A transaction that began by reading wants to write, but somebody else wrote in between.
const BUSY_SNAPSHOT: u32 = 517;

/// The call would wait for the transaction it is made in: there is one writer at a time.
#[derive(Debug)]
struct WaitsForItself;

impl std::fmt::Display for WaitsForItself {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the write lock is held by the transaction around the call")
    }
}

impl std::error::Error for WaitsForItself {}

/// Refuses a write of the store inside a transaction of the same file. Called before anything is begun.
pub(super) fn refuse_inside(database: &Database) -> Result<(), sqlx::Error> {
    if database.is_around() { Err(sqlx::Error::Configuration(Box::new(WaitsForItself))) } else { Ok(()) }
}

/// The extended result code, when the error is one of SQLite's.
pub(super) fn extended_code(error: &sqlx::Error) -> Option<u32> {
    error.as_database_error()?.code()?.parse().ok()
}

fn primary_code(error: &sqlx::Error) -> Option<u32> {
    extended_code(error).map(|code| code & 0xFF)
}

/// Whether SQLite may have rolled the transaction back by itself, or the connection is no longer to be trusted.
pub(super) fn ends_transaction(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(_) => {
            matches!(primary_code(error), Some(4 | NOMEM | INTERRUPT | IOERR | CORRUPT | FULL | NOTADB))
        }
        sqlx::Error::WorkerCrashed | sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        _ => false,
    }
}

/// Whether the answer of a commit is unknown: the file may or may not have it.
pub(super) fn in_doubt(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::WorkerCrashed | sqlx::Error::Io(_)) || primary_code(error) == Some(IOERR)
}

/// Whether a batch met a delivery that is not there: what the trigger of `completions` in `schema.sql` raises.
pub(super) fn is_missed(error: &sqlx::Error) -> bool {
    extended_code(error) == Some(CONSTRAINT_TRIGGER)
}

/// Whether SQLite refused a statement for what it says: the code of errors without one of their own.
pub(super) fn is_plain(error: &sqlx::Error) -> bool {
    extended_code(error) == Some(PLAIN)
}

/// Whether a statement that ends a transaction met none: SQLite has no code for it.
pub(super) fn is_over(error: &sqlx::Error) -> bool {
    let over = |text: &str| text.contains("no such savepoint") || text.contains("no transaction is active");
    is_plain(error) && error.as_database_error().is_some_and(|error| over(error.message()))
}

/// Whether it is a value of one row that cannot be read, such as text that is not UTF-8.
pub(super) fn is_decode(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_))
}

/// The bus's error for what happened at `path` while it did `what` (such as `store events`).
pub(super) fn store_error(path: &Path, what: &str, error: sqlx::Error) -> Error {
    let file = path.display();
    let retryable = |message: String, error| Error::store_retryable(message, error);
    let fatal = |message: String, error: sqlx::Error| Error::store(message, Some(Box::new(error)));
    let Some(extended) = extended_code(&error) else {
        return without_code(path, what, error);
    };
    if extended == BUSY_SNAPSHOT {
        return retryable(
            format!(
                "could not {what} in `{file}`, because its transaction read before another one wrote: open it with `BEGIN IMMEDIATE`, or run it again"
            ),
            error,
        );
    }
    match extended & 0xFF {
        BUSY | LOCKED => retryable(
            format!(
                "could not {what} in `{file}`, because another transaction kept its write lock: keep transactions short, open none inside another, and try again"
            ),
            error,
        ),
        FULL => retryable(
            format!(
                "could not {what} in `{file}`, because its disk is full: free some space, nothing of the transaction was kept"
            ),
            error,
        ),
        IOERR => retryable(format!("could not {what} in `{file}`, because its disk failed: check the disk"), error),
        READONLY => fatal(
            format!(
                "could not {what} in `{file}`, because this process may not write it: give it write permission for the file and its folder"
            ),
            error,
        ),
        CANTOPEN => fatal(
            format!(
                "could not open `{file}`: check that its folder exists, and that this process may read and write the file and its folder"
            ),
            error,
        ),
        NOTADB => fatal(format!("`{file}` is not a SQLite file: name another file, or move this one away"), error),
        CORRUPT => fatal(
            format!(
                "`{file}` is damaged: stop its processes and restore it from a backup, or recover it with `sqlite3 .recover`"
            ),
            error,
        ),
        TOOBIG => fatal(
            format!(
                "could not {what} in `{file}`, because a value is too large for SQLite: store large data elsewhere and send its name"
            ),
            error,
        ),
        _ => other_code(path, what, error),
    }
}

fn other_code(path: &Path, what: &str, error: sqlx::Error) -> Error {
    let file = path.display();
    let text = error.to_string();
    if text.contains("no such table") || text.contains("no such view") || text.contains("no such column") {
        return Error::store(
            format!(
                "`{file}` has no tables of this store, or those of another version: call `setup` first, or leave it to `start`"
            ),
            Some(Box::new(error)),
        );
    }
    Error::store(format!("could not {what} in `{file}`: see the cause"), Some(Box::new(error)))
}

fn without_code(path: &Path, what: &str, error: sqlx::Error) -> Error {
    let file = path.display();
    match error {
        sqlx::Error::Configuration(inner) if inner.is::<WaitsForItself>() => Error::TransactionRequired {
            message: format!(
                "could not {what} in `{file}` from inside a transaction of it, which holds its only write lock: use that transaction, as in `bus.publish(tx, ..)`, or do it after the transaction"
            ),
        },
        sqlx::Error::PoolClosed => Error::lifecycle(format!(
            "could not {what} in `{file}`, because the store is closed, which stopping its bus does: open another store and build another bus"
        )),
        sqlx::Error::PoolTimedOut => Error::store_retryable(
            format!(
                "could not {what} in `{file}`, because all its connections are in use: end transactions and give readers back sooner"
            ),
            error,
        ),
        sqlx::Error::WorkerCrashed | sqlx::Error::Io(_) => Error::store_retryable(
            format!("could not {what} in `{file}`, because its connection ended: try again"),
            error,
        ),
        error if is_decode(&error) => Error::store(
            format!(
                "could not {what} in `{file}`, because a row has a value that another program wrote: see the cause"
            ),
            Some(Box::new(error)),
        ),
        error => Error::store(format!("could not {what} in `{file}`: see the cause"), Some(Box::new(error))),
    }
}
