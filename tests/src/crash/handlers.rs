//! The handlers. Each notes in the journal when it starts and when it is about to succeed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use relaybus::{BoxError, Envelope, Error, HandlerContext, RelayBus, Result, State, consumer};
use relaybus_stores::SqliteStore;
use sqlx::SqliteConnection;

use super::base::{Base, Connection};
use super::events::{Booked, Moved, Poison};
use super::journal::{Journal, Start, What};

/// What the handlers of a process share.
#[derive(Debug)]
pub(super) struct World {
    pub(super) journal: Journal,
    pub(super) process: u32,
    pub(super) chance: Mutex<fastrand::Rng>,
}

impl World {
    fn starts(&self, context: &HandlerContext, name: &str) {
        let start = Start {
            handler: context.handler().as_str().to_owned(),
            event: context.event_id().as_str().to_owned(),
            name: name.to_owned(),
            key: context.key().map(|key| key.as_str().to_owned()),
            claims: context.fencing_token().claims,
            attempt: context.attempt(),
        };
        self.journal.enter(self.process, &What::Start(start));
    }

    fn succeeds(&self, context: &HandlerContext) {
        let (handler, event) = (context.handler().as_str().to_owned(), context.event_id().as_str().to_owned());
        self.journal.enter(self.process, &What::Ok { handler, event });
    }

    fn one_in(&self, many: u32) -> bool {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).u32(0..many) == 0
    }

    /// Most runs are quick; some take a while, so that a kill finds them half-way.
    async fn takes_a_while(&self) {
        if self.one_in(10) {
            let millis = self.chance.lock().unwrap_or_else(PoisonError::into_inner).u64(1..40);
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
    }
}

/// Writes an effect and publishes what follows from it, in its transaction.
async fn ledger<B: Base>(
    event: &Moved,
    tx: &mut Connection<B>,
    bus: &RelayBus<B>,
    world: &World,
    context: &HandlerContext,
) -> std::result::Result<(), BoxError> {
    world.starts(context, &event.name);
    B::effect(tx, &event.name, event.key.as_deref(), world.process).await?;
    bus.publish(tx, Booked { name: event.name.clone(), key: event.key.clone() }).await?;
    if world.one_in(30) {
        return Err("changed its mind after writing".into());
    }
    if world.one_in(50) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.succeeds(context);
    Ok(())
}

/// [`ledger`] in SQLite's transactions.
#[consumer(Moved, id = "ledger", transactional)]
pub(super) async fn sqlite_ledger(
    event: &Moved,
    tx: &mut SqliteConnection,
    bus: State<RelayBus<SqliteStore>>,
    world: State<World>,
    context: &HandlerContext,
) -> std::result::Result<(), BoxError> {
    ledger::<SqliteStore>(event, tx, &bus, &world, context).await
}

/// [`ledger`] in PostgreSQL's transactions.
#[cfg(feature = "postgres")]
#[consumer(Moved, id = "ledger", transactional)]
pub(super) async fn postgres_ledger(
    event: &Moved,
    tx: &mut sqlx::PgConnection,
    bus: State<RelayBus<relaybus_stores::PostgresStore>>,
    world: State<World>,
    context: &HandlerContext,
) -> std::result::Result<(), BoxError> {
    ledger::<relaybus_stores::PostgresStore>(event, tx, &bus, &world, context).await
}

/// Sees what the transactional handler published.
#[consumer(Booked, id = "audit")]
pub(super) async fn audit(event: &Booked, world: State<World>, context: &HandlerContext) -> Result {
    world.starts(context, &event.name);
    world.succeeds(context);
    Ok(())
}

/// Plain: its only trace is the journal.
#[consumer(Moved, id = "note")]
pub(super) async fn note(event: &Moved, world: State<World>, context: &HandlerContext) -> Result {
    world.starts(context, &event.name);
    world.takes_a_while().await;
    world.succeeds(context);
    Ok(())
}

/// Fails by chance, in an error or a panic.
#[consumer(Moved, id = "flaky")]
pub(super) async fn flaky(
    event: &Moved,
    world: State<World>,
    context: &HandlerContext,
) -> std::result::Result<(), BoxError> {
    world.starts(context, &event.name);
    if world.one_in(8) {
        return Err("failed by chance".into());
    }
    assert!(!world.one_in(100), "panicked by chance");
    world.takes_a_while().await;
    world.succeeds(context);
    Ok(())
}

/// Refuses some for good.
#[consumer(Moved, id = "refuse", concurrency = 3)]
pub(super) async fn refuse(event: Envelope<Moved>, world: State<World>, context: &HandlerContext) -> Result {
    world.starts(context, &event.payload.name);
    if event.payload.refused {
        return Err(Error::non_retryable("refused"));
    }
    world.succeeds(context);
    Ok(())
}

/// Goes on in a run before the completion of the one before is durable.
#[consumer(Moved, id = "replay", order = "replay")]
pub(super) async fn replay(event: &Moved, world: State<World>, context: &HandlerContext) -> Result {
    world.starts(context, &event.name);
    world.takes_a_while().await;
    world.succeeds(context);
    Ok(())
}

/// Attempts of the handler that ends its process.
pub(super) const POISON_ATTEMPTS: u32 = 3;

/// Ends the process that runs it.
#[consumer(Poison, id = "poison", retry(attempts = 3))]
pub(super) async fn poison(event: &Poison, world: State<World>, context: &HandlerContext) -> Result {
    world.starts(context, &event.name);
    if event.deadly {
        world.journal.enter(world.process, &What::Abort);
        std::process::abort();
    }
    world.succeeds(context);
    Ok(())
}
