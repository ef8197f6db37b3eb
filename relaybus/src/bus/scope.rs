//! Where a function with `#[transaction]` runs: in a transaction of its own, or in its caller's.

use std::any::{Any, TypeId, type_name};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::isolated::Isolated;
use super::transaction::{IsSerializationFailure, Unfinished, Work, attempt};
use super::{Engine, RelayBus};
use crate::error::{Error, Result};
use crate::store::{AnyTransaction, EventStore, IsolationLevel, Lends, StoreTransaction};

/// What a function with `#[transaction]` takes in place of its handle `&mut H`: a bus or a transaction.
///
/// `&bus` opens a transaction, which commits when the function returns `Ok` and rolls back otherwise; `&mut *tx` joins the
/// transaction that the handle belongs to. A bus opens for every handle that its store lends: its own transaction, the
/// database client's connection in it, and [`AnyTransaction`].
///
/// ```
/// # use relaybus::memory::{MemoryStore, MemoryTransaction};
/// # use relaybus::{Event, RelayBus, Result, transaction};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Event, Serialize, Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
/// #[transaction]
/// async fn place(tx: &mut MemoryTransaction, bus: &RelayBus<MemoryStore>) -> Result {
///     bus.publish(tx, OrderPlaced {}).await?;
///     Ok(())
/// }
///
/// #[transaction]
/// async fn place_two(tx: &mut MemoryTransaction, bus: &RelayBus<MemoryStore>) -> Result {
///     place(&mut *tx, bus).await?;
///     place(tx, bus).await
/// }
/// # async fn example(bus: RelayBus<MemoryStore>) -> Result {
/// place_two(&bus, &bus).await
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a bus nor a transaction handle `&mut {H}`",
    label = "give `&bus` to open a transaction, or `&mut *tx` to join one",
    note = "a function with `#[transaction]` opens a transaction when it is given the bus by reference, and joins the one whose handle it is given"
)]
pub trait TransactionScope<H>: Sized + Send {
    /// Where the work runs.
    #[doc(hidden)]
    fn scope<'s>(self) -> Scope<'s, H>
    where
        Self: 's;
}

/// Where the work of a function with `#[transaction]` runs.
#[doc(hidden)]
pub struct Scope<'s, H>(Where<'s, H>);

enum Where<'s, H> {
    Open(&'s Arc<Engine>),
    Join(&'s mut H),
}

impl<S: EventStore, H: Send + 'static> TransactionScope<H> for &RelayBus<S>
where
    S::Family: Lends<H>,
{
    fn scope<'s>(self) -> Scope<'s, H>
    where
        Self: 's,
    {
        Scope(Where::Open(&self.engine))
    }
}

impl<H: Send> TransactionScope<H> for &mut H {
    fn scope<'s>(self) -> Scope<'s, H>
    where
        Self: 's,
    {
        Scope(Where::Join(self))
    }
}

/// What `#[transaction]` makes of a body that runs once.
#[doc(hidden)]
pub fn run_transaction<'s, H, T, E, F>(scope: impl TransactionScope<H> + 's, work: F) -> BoxFuture<'s, Result<T, E>>
where
    H: Send + 'static,
    T: Send + 's,
    E: From<Error> + Send + 's,
    F: for<'a> Work<&'a mut H, Result<T, E>, Fut: Send> + Send + 's,
{
    run(scope.scope(), None, work)
}

/// What `#[transaction]` makes of a body that runs once, at a level.
#[doc(hidden)]
pub fn run_transaction_at<'s, H, T, E, F>(
    scope: impl TransactionScope<H> + 's,
    level: IsolationLevel,
    work: F,
) -> BoxFuture<'s, Result<T, E>>
where
    H: Send + 'static,
    T: Send + 's,
    E: From<Error> + Send + 's,
    F: for<'a> Work<&'a mut H, Result<T, E>, Fut: Send> + Send + 's,
{
    run(scope.scope(), Some(level), work)
}

/// Boxed, because the compiler cannot prove a future `Send` that has the work and an error with a lifetime in it, such as
/// `Box<dyn Error + 'static>`, once it has forgotten the lifetimes.
fn run<'s, H, T, E, F>(scope: Scope<'s, H>, level: Option<IsolationLevel>, work: F) -> BoxFuture<'s, Result<T, E>>
where
    H: Send + 'static,
    T: Send + 's,
    E: From<Error> + Send + 's,
    F: for<'a> Work<&'a mut H, Result<T, E>, Fut: Send> + Send + 's,
{
    Box::pin(async move {
        match scope.0 {
            Where::Open(engine) => {
                attempt(engine, &engine.store, level, lend, work).await.map_err(Unfinished::into_error)
            }
            Where::Join(handle) => join(handle, level, work).await,
        }
    })
}

/// What `#[transaction]` makes of a body that is run again after a serialization failure. `attempts` is at least 1.
#[doc(hidden)]
pub fn rerun_transaction<'s, H, T, E, F>(
    scope: impl TransactionScope<H> + 's,
    level: IsolationLevel,
    attempts: u32,
    work: F,
) -> BoxFuture<'s, Result<T, E>>
where
    H: Send + 'static,
    T: Send + 's,
    E: From<Error> + IsSerializationFailure + Send + 's,
    F: for<'a> Work<&'a mut H, Result<T, E>, Fut: Send> + Clone + Send + 's,
{
    let scope = scope.scope().0;
    Box::pin(async move {
        let engine = match scope {
            Where::Open(engine) => engine,
            Where::Join(handle) => return join(handle, Some(level), work).await,
        };
        for _ in 1..attempts {
            match attempt(engine, &engine.store, Some(level), lend, work.clone()).await {
                Err(unfinished) if unfinished.may_run_again(&engine.store) => {}
                ended => return ended.map_err(Unfinished::into_error),
            }
        }
        attempt(engine, &engine.store, Some(level), lend, work).await.map_err(Unfinished::into_error)
    })
}

/// Runs the work in the caller's transaction, which is the one that is rerun.
async fn join<H, T, E, F>(handle: &mut H, level: Option<IsolationLevel>, work: F) -> Result<T, E>
where
    E: From<Error>,
    F: for<'a> Work<&'a mut H, Result<T, E>, Fut: Send>,
{
    if let Some(wanted) = level {
        let running = Isolated::at(std::ptr::from_mut(handle).addr()).map(|mark| mark.level());
        if running != Some(wanted) {
            let running = running.map_or("the database's default", IsolationLevel::as_str);
            return Err(Error::TransactionIsolationConflict { wanted: wanted.as_str(), running }.into());
        }
    }
    work(handle).await
}

fn lend<H: 'static>(transaction: &mut AnyTransaction) -> Result<&mut H> {
    let lent: Option<&mut (dyn Any + Send)> = transaction.lend(TypeId::of::<H>());
    lent.and_then(|lent| lent.downcast_mut()).ok_or_else(|| {
        Error::configuration(format!(
            "the transactions of this bus's store lend no `{}`: take the store's own handle",
            type_name::<H>()
        ))
    })
}
