//! Transactions that the store opens: options, and how they end.

use std::any::{Any, TypeId};
use std::future::Future;
use std::time::Duration;

use super::Database;
use crate::error::{Error, Result};

/// An isolation level, from weak to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IsolationLevel {
    /// Each statement sees what was committed before it.
    ReadCommitted,
    /// The transaction sees one state of the database.
    RepeatableRead,
    /// The transaction runs as if it were alone.
    Serializable,
}

impl IsolationLevel {
    /// The level in SQL's words, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }
}

/// How a transaction is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionOptions {
    /// The isolation level; the database's default without one.
    pub isolation: Option<IsolationLevel>,
    /// The time budget that the database enforces where it can. The bus holds the transaction to it in any case.
    pub budget: Option<Duration>,
    /// Whether it is a handler's, in which its delivery will be completed: a store may then watch that it stays open.
    pub completes: bool,
}

impl TransactionOptions {
    /// The options of a handler's transaction without a budget.
    #[must_use]
    pub fn of_handler() -> Self {
        Self { completes: true, ..Self::default() }
    }
}

/// The end of a commit that did not answer "committed".
#[derive(Debug)]
pub enum CommitError {
    /// Nothing of the transaction was kept.
    RolledBack(Error),
    /// The answer was lost: it is not known whether the transaction committed.
    InDoubt(Error),
}

impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::RolledBack(error) | CommitError::InDoubt(error) => error,
        }
    }
}

/// A transaction that the store opened. Dropping it rolls it back.
pub trait StoreTransaction: Send + Sized + 'static {
    /// Commits.
    fn commit(self) -> impl Future<Output = std::result::Result<(), CommitError>> + Send;

    /// Rolls back and waits for it.
    fn rollback(self) -> impl Future<Output = Result<()>> + Send;

    /// Lends the value of type `wanted` that a handler may take: the transaction itself, or the client's connection in it.
    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)>;

    /// Whether the connection to the database is known to be gone, and all of the transaction with it. Asked when a call of the
    /// store on it has failed: whether the handler is to blame then shows when it happens again and again.
    ///
    /// Defaults to no, for stores whose transactions need no connection.
    fn is_lost(&self) -> bool {
        false
    }

    /// The database it writes to; see [`EventStore::database`](super::EventStore::database). Defaults to none.
    fn database(&self) -> Option<&Database> {
        None
    }
}
