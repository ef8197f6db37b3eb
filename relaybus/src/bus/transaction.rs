//! `bus.transaction`: opens, commits or rolls back, holds the time budget, reruns what the database could not serialize.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::isolated::{self, Isolated};
use super::{Engine, RelayBus};
use crate::error::{Error, Result, causes};
use crate::store::{CommitError, EventStore, IsolationLevel, StoreTransaction, TransactionOptions, inside};

/// An async closure over a transaction, with a nameable future: what lets its future be required to be `Send`.
pub trait Work<A, R>: AsyncFnOnce(A) -> R + FnOnce(A) -> <Self as Work<A, R>>::Fut {
    /// The closure's future.
    type Fut: Future<Output = R>;
}

impl<F, Fut, A, R> Work<A, R> for F
where
    F: AsyncFnOnce(A) -> R + FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
{
    type Fut = Fut;
}

impl<S: EventStore> RelayBus<S> {
    /// Runs `work` in a transaction: commits when it returns `Ok`, rolls back when it returns `Err`, panics, runs past the
    /// transaction timeout or is dropped.
    ///
    /// The closure says what it returns, because nothing else tells the compiler its error: `async |tx| -> Result<(), AppError>`.
    /// Any type of error will do that is `From<relaybus::Error>`, [`BoxError`](crate::BoxError) among them.
    ///
    /// Do not call from inside it what opens another transaction: see [`RelayBus::publish_detached`].
    ///
    /// ```
    /// # use relaybus::{memory::MemoryStore, Event, RelayBus, Result};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Event, Serialize, Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
    /// # async fn example(bus: RelayBus<MemoryStore>) -> Result<()> {
    /// bus.transaction(async |tx| -> Result<()> {
    ///     // your own writes through `tx`, then:
    ///     bus.publish(tx, OrderPlaced {}).await?;
    ///     Ok(())
    /// })
    /// .await
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `work` returned; the store's error; `RELAYBUS_TRANSACTION_TIMEOUT`. When the answer to the commit is lost, the
    /// store's error is returned although the transaction may have committed.
    ///
    /// # Cancel safety
    /// Dropping the future rolls back, unless the commit was already sent.
    #[allow(
        clippy::manual_async_fn,
        reason = "`Send` is promised here: a spawned task that must find it out inside cannot for every type, `BoxError` among them"
    )]
    pub fn transaction<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send,
        E: From<Error> + Send,
        F: for<'a> Work<&'a mut S::Transaction, Result<T, E>, Fut: Send> + Send,
    {
        async move { attempt(&self.engine, &*self.store, None, itself, work).await.map_err(Unfinished::into_error) }
    }

    /// As [`RelayBus::transaction`], at an isolation level. A serialization failure reruns all of `work`, at most `attempts`
    /// times in all; what it captured is cloned for each run. At [`IsolationLevel::ReadCommitted`] nothing is rerun.
    ///
    /// It may be met by the store, by the commit, or by a statement of `work`: an error of the store's own database client is
    /// found among the causes of what `work` returned, where [`IsSerializationFailure::as_error`] shows them.
    ///
    /// What the publishes of a run announce (the observers' `publish_finished`, the wake-up) waits until that run has
    /// committed, and is never said of one that has not.
    ///
    /// # Errors
    /// As [`RelayBus::transaction`]; `RELAYBUS_CONFIGURATION` when the store has no isolation levels or `attempts` is 0.
    ///
    /// # Cancel safety
    /// As [`RelayBus::transaction`].
    #[allow(
        clippy::manual_async_fn,
        reason = "`Send` is promised here: a spawned task that must find it out inside cannot for every type, `BoxError` among them"
    )]
    pub fn transaction_at<T, E, F>(
        &self,
        level: IsolationLevel,
        attempts: u32,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send,
        E: From<Error> + IsSerializationFailure + Send,
        F: for<'a> Work<&'a mut S::Transaction, Result<T, E>, Fut: Send> + Clone + Send,
    {
        async move {
            if attempts == 0 {
                return Err(Error::configuration("`attempts` of a transaction is 0, expected at least 1").into());
            }
            for _ in 1..attempts {
                match attempt(&self.engine, &*self.store, Some(level), itself, work.clone()).await {
                    Err(unfinished)
                        if level > IsolationLevel::ReadCommitted && unfinished.may_run_again(&*self.store) => {}
                    ended => return ended.map_err(Unfinished::into_error),
                }
            }
            attempt(&self.engine, &*self.store, Some(level), itself, work).await.map_err(Unfinished::into_error)
        }
    }

    /// Opens a transaction that is committed by hand. Dropping it rolls it back.
    ///
    /// ```
    /// # use relaybus::{memory::MemoryStore, Event, RelayBus, Result};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Event, Serialize, Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
    /// # async fn example(bus: RelayBus<MemoryStore>) -> Result<()> {
    /// let mut tx = bus.begin().await?;
    /// bus.publish(tx.store_transaction(), OrderPlaced {}).await?;
    /// tx.commit().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no transaction open.
    pub async fn begin(&self) -> Result<BusTransaction<S>> {
        let inner = open(&self.engine, &*self.store, None).await?;
        Ok(BusTransaction { inner, wake: self.engine.wake.clone() })
    }
}

/// Why a run of a transaction did not count.
pub(super) enum Unfinished<E> {
    /// Nothing of it was kept.
    RolledBack(E),
    /// It is not known whether it committed.
    InDoubt(E),
}

impl<E> Unfinished<E> {
    pub(super) fn into_error(self) -> E {
        match self {
            Self::RolledBack(error) | Self::InDoubt(error) => error,
        }
    }
}

impl<E: IsSerializationFailure> Unfinished<E> {
    /// Whether the database could not serialize it: as the error itself knows, or as the store finds among its causes.
    pub(super) fn may_run_again<S: EventStore>(&self, store: &S) -> bool {
        match self {
            Self::RolledBack(error) => {
                error.is_serialization_failure()
                    || error
                        .as_error()
                        .is_some_and(|error| causes(error).any(|error| store.is_serialization_failure(error)))
            }
            Self::InDoubt(_) => false,
        }
    }
}

/// One run: opens a transaction, gives `work` what `lend` takes out of it, commits or rolls back.
pub(super) async fn attempt<S, H, T, E, F>(
    engine: &Arc<Engine>,
    store: &S,
    level: Option<IsolationLevel>,
    lend: for<'a> fn(&'a mut S::Transaction) -> Result<&'a mut H>,
    work: F,
) -> Result<T, Unfinished<E>>
where
    S: EventStore,
    E: From<Error>,
    F: for<'a> Work<&'a mut H, Result<T, E>, Fut: Send>,
{
    let mut transaction = match open(engine, store, level).await {
        Ok(transaction) => transaction,
        Err(error) => return Err(Unfinished::RolledBack(error.into())),
    };
    let mark = level.map(|level| Isolated::mark(level, &mut transaction, store.handles()));
    let answer = match lend(&mut transaction) {
        Ok(handle) => {
            let work = inside(store.database(), isolated::within(mark.clone(), work(handle)));
            within_budget(engine, work).await
        }
        Err(error) => Err(error),
    };
    let error = match answer {
        Ok(Ok(value)) => {
            return match transaction.commit().await {
                Ok(()) => {
                    engine.wake.wake();
                    mark.inspect(|mark| mark.committed());
                    Ok(value)
                }
                Err(CommitError::RolledBack(error)) => Err(Unfinished::RolledBack(error.into())),
                Err(CommitError::InDoubt(error)) => Err(Unfinished::InDoubt(error.into())),
            };
        }
        Ok(Err(error)) => error,
        Err(overrun) => overrun.into(),
    };
    // A failed rollback leaves nothing behind either: the store drops the connection.
    drop(transaction.rollback().await);
    Err(Unfinished::RolledBack(error))
}

fn itself<T>(transaction: &mut T) -> Result<&mut T> {
    Ok(transaction)
}

async fn open<S: EventStore>(engine: &Engine, store: &S, level: Option<IsolationLevel>) -> Result<S::Transaction> {
    if level.is_some() && !store.capabilities().isolation_levels {
        return Err(Error::configuration(format!(
            "the {} store has no isolation levels: use `transaction`",
            store.name()
        )));
    }
    store
        .begin(&TransactionOptions { isolation: level, budget: engine.options.transaction_timeout, completes: false })
        .await
}

async fn within_budget<R>(engine: &Engine, work: impl Future<Output = R>) -> Result<R> {
    let Some(budget) = engine.options.transaction_timeout else { return Ok(work.await) };
    let timer = engine.clock.sleep(budget);
    tokio::select! {
        biased;
        result = work => Ok(result),
        () = timer => Err(Error::TransactionTimeout { budget, source: None }),
    }
}

/// A transaction that [`RelayBus::begin`] opened: committing it wakes the dispatcher.
pub struct BusTransaction<S: EventStore> {
    inner: S::Transaction,
    wake: crate::dispatch::Wake,
}

impl<S: EventStore> std::fmt::Debug for BusTransaction<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BusTransaction")
    }
}

impl<S: EventStore> BusTransaction<S> {
    /// The store's transaction, for publishing and for your own statements.
    pub fn store_transaction(&mut self) -> &mut S::Transaction {
        &mut self.inner
    }

    /// Commits.
    ///
    /// # Errors
    /// The store's. When the answer was lost, the transaction may have committed.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it open whether the transaction commits.
    pub async fn commit(self) -> Result<()> {
        self.inner.commit().await?;
        self.wake.wake();
        Ok(())
    }

    /// Rolls back and waits for it.
    ///
    /// # Errors
    /// The store's; nothing of the transaction stays in any case.
    ///
    /// # Cancel safety
    /// Dropping the future rolls back too.
    pub async fn rollback(self) -> Result<()> {
        self.inner.rollback().await
    }
}

/// Errors that can tell a serialization failure from others.
///
/// ```
/// # use relaybus::bus::IsSerializationFailure;
/// #[derive(Debug, thiserror::Error)]
/// enum AppError {
///     #[error("the bus failed")]
///     Bus(#[from] relaybus::Error),
///     #[error("the limit is reached")]
///     LimitReached,
/// }
///
/// impl IsSerializationFailure for AppError {
///     fn is_serialization_failure(&self) -> bool {
///         matches!(self, Self::Bus(error) if error.is_serialization_failure())
///     }
///
///     // Lets the store find an error of its database client among the causes.
///     fn as_error(&self) -> Option<&(dyn std::error::Error + 'static)> {
///         Some(self)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot tell a serialization failure from other errors",
    label = "a transaction with this error cannot be run again",
    note = "implement `relaybus::bus::IsSerializationFailure` for `{Self}`, and answer for the database's errors in it too"
)]
pub trait IsSerializationFailure {
    /// Whether the database refused to serialize the transaction, so that running all of it again may succeed.
    fn is_serialization_failure(&self) -> bool;

    /// The error for the store to look at: what its database client calls a serialization failure, there or among the causes,
    /// counts as well.
    ///
    /// Defaults to none: only [`IsSerializationFailure::is_serialization_failure`] is asked. This crate's own error and
    /// [`BoxError`](crate::BoxError) give themselves.
    fn as_error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}

impl IsSerializationFailure for Error {
    fn is_serialization_failure(&self) -> bool {
        matches!(self, Self::SerializationFailure { .. })
    }

    fn as_error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self)
    }
}

impl IsSerializationFailure for crate::BoxError {
    fn is_serialization_failure(&self) -> bool {
        causes(&**self).any(|error| error.downcast_ref::<Error>().is_some_and(Error::is_serialization_failure))
    }

    fn as_error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&**self)
    }
}

/// A budget that means no budget.
pub(crate) fn budget_of(timeout: Duration) -> Option<Duration> {
    (!timeout.is_zero()).then_some(timeout)
}
