//! Which database a store writes to, and on which of them the running code is inside a transaction.
//!
//! Two mistakes are found with it. A handle of another database would put the event where its bus never looks. And where
//! only one transaction at a time can write, a call that opens one inside another waits for the one it is called from.
//!
//! The marks are those of the code that is being polled, not of the task: of two futures that one task joins, only the one
//! inside the transaction is marked. What is spawned from inside is not marked either: it is a task of its own.

use std::future::Future;
use std::sync::Arc;

use smallvec::SmallVec;

/// A database, by a name that tells it apart from all others that a process may have open, such as the path of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database(Arc<str>);

tokio::task_local! {
    static INSIDE: SmallVec<[Database; 2]>;
}

impl Database {
    /// The database of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the caller runs inside a transaction of this database: in the closure of a `bus.transaction`, or in a
    /// transactional handler.
    #[must_use]
    pub fn is_around(&self) -> bool {
        INSIDE.try_with(|inside| inside.contains(self)).unwrap_or(false)
    }
}

/// Runs `work` as code inside a transaction of `database`.
pub(crate) async fn inside<R>(database: Option<&Database>, work: impl Future<Output = R>) -> R {
    let Some(database) = database else { return work.await };
    let mut inside = INSIDE.try_with(Clone::clone).unwrap_or_default();
    inside.push(database.clone());
    INSIDE.scope(inside, work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_is_around_what_runs_inside_its_transaction_and_around_nothing_else() {
        let (one, two) = (Database::new("one"), Database::new("two"));
        assert!(!one.is_around());
        let within = inside(Some(&one), async {
            assert!(one.is_around() && !two.is_around());
            inside(Some(&two), async { assert!(one.is_around() && two.is_around()) }).await;
            tokio::task::yield_now().await;
            assert!(one.is_around() && !two.is_around());
        });
        let beside = async {
            assert!(!one.is_around());
            tokio::task::yield_now().await;
            assert!(!one.is_around());
        };
        tokio::join!(within, beside);
        assert!(!one.is_around());
    }
}
