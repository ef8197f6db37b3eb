//! How PostgreSQL's errors become the bus's: one message that says what could not be done and what to do.
//!
//! The SQLSTATE decides. `40001`, and nothing else, is a serialization failure that the bus runs again.

use std::io::ErrorKind;
use std::time::Duration;

use relaybus::Error;
use sqlx::postgres::PgConnectOptions;

/// Whether an error of sqlx is a serialization failure (`40001`), after which the whole transaction may run again.
///
/// `bus.transaction_at(..)` finds such errors by itself in a `BoxError`, and in an error of your own whose `as_error` shows it:
/// this is for one that does not, and for your own retries.
#[must_use]
pub fn is_serialization_failure(error: &sqlx::Error) -> bool {
    sqlstate(error).is_some_and(|code| code == "40001")
}

/// The five letters of PostgreSQL's error, when it is one.
pub(super) fn sqlstate(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(std::borrow::Cow::into_owned)
}

/// Whether the connection is gone or cannot be trusted any more.
pub(super) fn is_disconnect(error: &sqlx::Error) -> bool {
    // A read-only server was the primary before a fail-over: the next connection finds the new one.
    is_connection_lost(error) || sqlstate(error).is_some_and(|code| code == "25006")
}

/// Whether the connection is gone.
pub(super) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed | sqlx::Error::Tls(_) => true,
        sqlx::Error::Database(_) => {
            sqlstate(error).is_some_and(|code| (code.starts_with("57") && code != "57014") || code.starts_with("08"))
        }
        _ => false,
    }
}

/// Whether a statement belongs in a transaction and met none.
pub(super) fn is_outside(error: &sqlx::Error) -> bool {
    sqlstate(error).is_some_and(|code| code == "25P01")
}

/// Whether the commit of a transaction did not find the mark that was left in it: its code has ended it.
pub(super) fn lacks_mark(error: &sqlx::Error) -> bool {
    // The name of the setting is in the message whatever its language.
    sqlstate(error).is_some_and(|code| code == "42704")
        && error.as_database_error().is_some_and(|error| error.message().contains("relaybus.transaction_has_ended"))
}

/// Whether a prepared statement does not fit the tables any more: somebody changed them while it was prepared. On another
/// connection it is prepared anew.
pub(super) fn is_outdated(error: &sqlx::Error) -> bool {
    // `cached plan must not change result type`, and a relation of the plan that was dropped and made again.
    sqlstate(error).is_some_and(|code| matches!(&*code, "0A000" | "XX000"))
}

/// Whether an event with this id is there already.
pub(super) fn is_duplicate(error: &sqlx::Error) -> bool {
    sqlstate(error).is_some_and(|code| code == "23505")
}

/// The bus's error for what happened in a transaction with a time budget.
pub(super) fn budget_error(what: &str, budget: Option<Duration>, error: sqlx::Error) -> Error {
    let ended = sqlstate(&error).is_some_and(|code| matches!(&*code, "57014" | "25P03" | "25P04"));
    match budget {
        Some(budget) if ended => Error::TransactionTimeout { budget, source: Some(Box::new(error)) },
        _ => store_error(what, error),
    }
}

/// The bus's error for what happened while the store did `what` (such as `store events`).
pub(super) fn store_error(what: &str, error: sqlx::Error) -> Error {
    let Some(code) = sqlstate(&error) else { return without_code(what, error) };
    let retryable = |reason: &str, error| Error::store_retryable(format!("could not {what}, {reason}"), error);
    let fatal =
        |reason: &str, error: sqlx::Error| Error::store(format!("could not {what}, {reason}"), Some(Box::new(error)));
    match &*code {
        "40001" => Error::SerializationFailure { source: Some(Box::new(error)) },
        "40P01" => retryable(
            "because two transactions waited for each other: run it again, and publish several keys in one call",
            error,
        ),
        "42P01" | "3F000" | "42703" => fatal(
            "because the tables of this store are not there or are of another version: call `setup` first, or leave it to `start`",
            error,
        ),
        "42501" => fatal("because the role lacks a right: grant it USAGE on the schema and DML on the tables", error),
        "28000" | "28P01" | "3D000" => fatal(
            "because the server refuses the login: correct the user, password and database of its URL, see the cause",
            error,
        ),
        "25006" => retryable(
            "because nothing may be written: the server is a standby or fails over, the transaction began as `READ ONLY`, or `default_transaction_read_only` is on for the server, the database or the role",
            error,
        ),
        "25P02" => fatal(
            "because an earlier statement of the transaction failed: return that error, and run the whole of it again",
            error,
        ),
        "57014" => retryable("because the statement took too long: look for locks that are held, and try again", error),
        "55P03" => retryable(
            "because another transaction holds a lock it needs: keep transactions short, and try again",
            error,
        ),
        "53100" => {
            retryable("because the server's disk is full: free some space, nothing of the transaction was kept", error)
        }
        "53200" => retryable(
            "because the server is out of memory: publish fewer keys in one transaction, or raise `max_locks_per_transaction`",
            error,
        ),
        "53300" => retryable(
            "because the server has no connection left: lower the pool's size or raise `max_connections`",
            error,
        ),
        "08P01" if error.to_string().contains("unsupported startup parameter") => fatal(
            "because a pooler refuses what a connection starts with: add `extra_float_digits` and `options` to its `ignore_startup_parameters`",
            error,
        ),
        "26000" | "42P05" | "08P01" => retryable(
            "because a pooler does not keep prepared statements: give `prepared_statements(false)` and `WakeUpMode::Poll`",
            error,
        ),
        "22P02" | "22P05" | "22021" => fatal(
            "because its payload or its text is not valid JSON or UTF-8 for PostgreSQL: strip or encode it",
            error,
        ),
        code if code.starts_with("57P") || code.starts_with("08") => {
            retryable("because the server ended the connection: try again", error)
        }
        code if code.starts_with("53") || code.starts_with("58") => {
            retryable("because the server is short of something: see the cause", error)
        }
        _ => fatal("see the cause", error),
    }
}

/// The error with the address of the server in its words, where it is about reaching that.
pub(super) fn located(error: Error, address: &str) -> Error {
    match error {
        Error::Store { message, retryable, source: Some(source) }
            if source.downcast_ref().is_some_and(is_about_reaching) && !message.contains(address) =>
        {
            Error::Store { message: format!("{message} ({address})"), retryable, source: Some(source) }
        }
        error => error,
    }
}

fn is_about_reaching(error: &sqlx::Error) -> bool {
    let refuses = |code: String| code.starts_with("28") || matches!(&*code, "3D000" | "53300" | "25006");
    is_connection_lost(error) || matches!(error, sqlx::Error::PoolTimedOut) || sqlstate(error).is_some_and(refuses)
}

/// Where a store's tables are, for messages: nothing of it is secret.
pub(super) fn address_of(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    match options.get_socket() {
        Some(socket) => format!("database `{database}` at `{}`, port {}", socket.display(), options.get_port()),
        None => format!("database `{database}` at `{}:{}`", options.get_host(), options.get_port()),
    }
}

fn without_code(what: &str, error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::Io(io) if matches!(io.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => {
            Error::store_retryable(
                format!(
                    "could not {what}, because no server answers: start it, or correct the host and port of its URL"
                ),
                sqlx::Error::Io(io),
            )
        }
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed | sqlx::Error::Tls(_) => {
            Error::store_retryable(format!("could not {what}, because the connection was lost: try again"), error)
        }
        sqlx::Error::PoolTimedOut => Error::store_retryable(
            format!(
                "could not {what}, because no connection got free in time: make the pool larger or transactions shorter, unless the server does not answer"
            ),
            error,
        ),
        error => Error::store(format!("could not {what}, see the cause"), Some(Box::new(error))),
    }
}
