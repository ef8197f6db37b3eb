//! `#[transaction]` at run time: it opens or joins, reruns what could not be serialized, and announces what committed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod levels;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaybus::bus::IsSerializationFailure;
use relaybus::memory::MemoryTransaction;
use relaybus::observe::PublishFinished;
use relaybus::store::IsolationLevel;
use relaybus::{
    AnyTransaction, BoxError, Clock, Envelope, Error, Event, EventStore, Interest, MemoryStore, Observer, RelayBus,
    Result, Subscribe, VirtualClock, transaction,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use levels::{Levels, Refusal};

#[derive(Event, Serialize, Deserialize, Clone)]
#[event("note.v1")]
struct Note {
    text: String,
}

fn note(text: &str) -> Note {
    Note { text: text.to_owned() }
}

fn bus_of<S: EventStore>(store: S) -> RelayBus<S> {
    let clock = VirtualClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let notes = Subscribe::to("notes", |_: Envelope<Note>, _| async {});
    RelayBus::builder(store).clock(clock).subscribe(notes).build().unwrap()
}

async fn stored<S: EventStore>(bus: &RelayBus<S>) -> u64 {
    bus.statistics().await.unwrap().pending
}

/// Publishes through the erased bus or a typed one, whatever the handle.
#[transaction]
async fn write(tx: &mut MemoryTransaction, bus: &RelayBus<MemoryStore>, text: &str) -> Result<usize> {
    bus.publish(tx, note(text)).await?;
    if text == "bad" { Err(Error::non_retryable("bad")) } else { Ok(text.len()) }
}

#[transaction]
async fn write_two(tx: &mut MemoryTransaction, bus: &RelayBus<MemoryStore>, second: &str) -> Result<usize> {
    let first = write(&mut *tx, bus, "first").await?;
    Ok(first + write(tx, bus, second).await?)
}

#[tokio::test(start_paused = true)]
async fn a_bus_opens_and_a_handle_joins() {
    let bus = bus_of(MemoryStore::new());
    assert_eq!(write(&bus, &bus, "four").await.unwrap(), 4);
    assert_eq!(stored(&bus).await, 1);
    assert_eq!(write(&bus, &bus, "bad").await.unwrap_err().code(), "RELAYBUS_NON_RETRYABLE");
    assert_eq!(stored(&bus).await, 1, "an error rolls back");
    assert_eq!(write_two(&bus, &bus, "second").await.unwrap(), 11);
    assert_eq!(stored(&bus).await, 3);
    assert!(write_two(&bus, &bus, "bad").await.is_err());
    assert_eq!(stored(&bus).await, 3, "what a joined function wrote goes with the transaction");
    bus.transaction(async |tx| -> Result {
        write(tx, &bus, "joined").await?;
        assert_eq!(stored(&bus).await, 3, "not before the commit");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(stored(&bus).await, 4);
}

/// A service with methods, generic over what it publishes.
struct Service {
    bus: RelayBus<MemoryStore>,
    runs: AtomicU32,
}

impl Service {
    #[transaction]
    async fn place<E>(&self, tx: &mut MemoryTransaction, event: E, times: u32) -> Result<u32, BoxError>
    where
        E: Event + Clone,
    {
        for _ in 0..times {
            self.bus.publish(tx, event.clone()).await?;
        }
        if times > 2 {
            return Err("too many".into());
        }
        Ok(self.runs.fetch_add(1, Ordering::SeqCst) + 1)
    }

    #[transaction]
    async fn erased(&mut self, _tx: &mut AnyTransaction, Note { text }: Note) -> Result<String> {
        self.runs = AtomicU32::new(9);
        Ok(text)
    }
}

#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "the call must run in a task of its own")]
async fn methods_borrow_themselves_and_can_be_spawned() {
    let service = Arc::new(Service { bus: bus_of(MemoryStore::new()), runs: AtomicU32::new(0) });
    let spawned = service.clone();
    let placed = tokio::spawn(async move { spawned.place(&spawned.bus, note("a"), 2).await.unwrap() });
    assert_eq!(placed.await.unwrap(), 1);
    assert_eq!(service.place(&service.bus, note("a"), 3).await.unwrap_err().to_string(), "too many");
    assert_eq!(stored(&service.bus).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_typed_bus_opens_for_the_erased_handle_and_an_erased_bus_too() {
    let bus = bus_of(MemoryStore::new());
    let mut service = Service { bus: bus.clone(), runs: AtomicU32::new(0) };
    assert_eq!(service.erased(&bus, note("typed")).await.unwrap(), "typed");
    assert_eq!(service.erased(&bus.any(), note("any")).await.unwrap(), "any");
    assert_eq!(service.runs.into_inner(), 9);
}

#[transaction]
async fn hang(tx: &mut MemoryTransaction, bus: &RelayBus<MemoryStore>, reached: &Notify) -> Result {
    bus.publish(tx, note("hanging")).await?;
    reached.notify_one();
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn a_dropped_future_and_an_overrun_roll_back() {
    let bus = bus_of(MemoryStore::new());
    let reached = Notify::new();
    tokio::select! {
        _ = hang(&bus, &bus, &reached) => unreachable!("it hangs"),
        () = reached.notified() => {}
    }
    assert_eq!(stored(&bus).await, 0);
    let error = hang(&bus, &bus, &reached).await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_TRANSACTION_TIMEOUT");
    assert_eq!(stored(&bus).await, 0);
}

/// An error of an application, which carries one of ours.
#[derive(Debug, PartialEq)]
enum AppError {
    Limit,
    Bus(&'static str, bool),
}

impl From<Error> for AppError {
    fn from(error: Error) -> Self {
        Self::Bus(error.code(), error.is_serialization_failure())
    }
}

impl IsSerializationFailure for AppError {
    fn is_serialization_failure(&self) -> bool {
        *self == Self::Bus("RELAYBUS_ERROR", true)
    }
}

/// Counts its runs, and what it says to the first ones.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU32>);

impl Runs {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn count(&self) -> u32 {
        self.0.swap(0, Ordering::SeqCst)
    }
}

#[transaction(isolation = "serializable", attempts = 4)]
async fn reserve(
    tx: &mut MemoryTransaction,
    bus: &RelayBus<Levels>,
    runs: &Runs,
    refused: u32,
    event: Note,
) -> Result<u32, AppError> {
    bus.publish(tx, event).await?;
    let run = runs.next();
    if run <= refused { Err(Error::SerializationFailure { source: None }.into()) } else { Ok(run) }
}

#[tokio::test(start_paused = true)]
async fn a_serialization_failure_runs_it_again_in_a_new_transaction() {
    let store = Levels::default();
    let bus = bus_of(store.clone());
    let runs = Runs::default();
    assert_eq!(reserve(&bus, &bus, &runs, 3, note("a")).await, Ok(4));
    assert_eq!((runs.count(), stored(&bus).await), (4, 1), "the runs that failed left nothing");
    let budget = Some(Duration::from_secs(5));
    assert_eq!(store.begun(), vec![(Some(IsolationLevel::Serializable), budget); 4]);

    assert_eq!(reserve(&bus, &bus, &runs, 9, note("a")).await, Err(AppError::Bus("RELAYBUS_ERROR", true)));
    assert_eq!((runs.count(), stored(&bus).await), (4, 1), "the last error is returned as it is");

    store.refuse(Refusal::Serialization);
    assert_eq!(reserve(&bus, &bus, &runs, 0, note("a")).await, Ok(2), "a refused commit counts too");
    assert_eq!((runs.count(), stored(&bus).await), (2, 2));

    store.refuse(Refusal::InDoubt);
    assert!(reserve(&bus, &bus, &runs, 0, note("a")).await.is_err());
    assert_eq!(runs.count(), 1, "what may have committed is not run again");
}

#[transaction(isolation = "repeatable read")]
async fn check(_tx: &mut MemoryTransaction, runs: &Runs, error: &str) -> Result<(), AppError> {
    runs.next();
    match error {
        "limit" => Err(AppError::Limit),
        "serialization" => Err(Error::SerializationFailure { source: None }.into()),
        "hang" => std::future::pending().await,
        other => Err(Error::configuration(other).into()),
    }
}

#[transaction(isolation = "read committed")]
async fn committed(_tx: &mut MemoryTransaction, runs: &mut u32) -> Result<(), AppError> {
    *runs += 1;
    Err(Error::SerializationFailure { source: None }.into())
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_run_again() {
    let bus = bus_of(Levels::default());
    let runs = Runs::default();
    assert_eq!(check(&bus, &runs, "limit").await, Err(AppError::Limit));
    assert_eq!(runs.count(), 1);
    assert!(check(&bus, &runs, "wrong").await.is_err());
    assert_eq!(runs.count(), 1);
    assert_eq!(check(&bus, &runs, "hang").await, Err(AppError::Bus("RELAYBUS_TRANSACTION_TIMEOUT", false)));
    assert_eq!(runs.count(), 1, "an overrun is not a serialization failure");
    assert!(check(&bus, &runs, "serialization").await.is_err());
    assert_eq!(runs.count(), 3, "three attempts unless told otherwise");
    let mut count = 0;
    assert!(committed(&bus, &mut count).await.is_err());
    assert_eq!(count, 1, "nothing is rerun at read committed");
    let result: Result<(), AppError> = bus
        .transaction_at(IsolationLevel::ReadCommitted, 5, {
            let runs = runs.clone();
            async move |_: &mut levels::LevelTransaction| {
                runs.next();
                Err(Error::SerializationFailure { source: None }.into())
            }
        })
        .await;
    assert!(result.is_err());
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_without_levels_says_so() {
    let bus = bus_of(MemoryStore::new());
    let error = committed(&bus, &mut 0).await.unwrap_err();
    assert_eq!(error, AppError::Bus("RELAYBUS_CONFIGURATION", false));
}

#[transaction(isolation = "serializable")]
async fn strict(tx: &mut MemoryTransaction, bus: &RelayBus<Levels>) -> Result {
    bus.publish(tx, note("strict")).await.map(drop)
}

#[transaction(isolation = "repeatable read")]
async fn outer(tx: &mut MemoryTransaction, bus: &RelayBus<Levels>, inner: bool) -> Result {
    if inner {
        strict(&mut *tx, bus).await?;
    }
    repeatable(tx, bus).await
}

#[transaction(isolation = "repeatable read")]
async fn repeatable(tx: &mut MemoryTransaction, bus: &RelayBus<Levels>) -> Result {
    bus.publish(&mut &mut *tx, note("repeatable")).await.map(drop)
}

#[transaction]
async fn plain(tx: &mut MemoryTransaction, bus: &RelayBus<Levels>) -> Result {
    strict(tx, bus).await
}

#[tokio::test(start_paused = true)]
async fn a_level_joins_only_its_own() {
    let bus = bus_of(Levels::default());
    outer(&bus, &bus, false).await.unwrap();
    assert_eq!(stored(&bus).await, 1);
    let error = outer(&bus, &bus, true).await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_TRANSACTION_ISOLATION_CONFLICT");
    assert_eq!(
        error.to_string(),
        "the running transaction has isolation level `repeatable read`, `serializable` was asked for: open it at that level"
    );
    let error = plain(&bus, &bus).await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_TRANSACTION_ISOLATION_CONFLICT");
    assert!(error.to_string().contains("`the database's default`"), "{error}");
    assert_eq!(stored(&bus).await, 1);
    let joined: Result = bus
        .transaction_at(IsolationLevel::Serializable, 1, async |tx| strict(&mut *relaybus_inner(tx), &bus).await)
        .await;
    joined.unwrap();
    assert_eq!(stored(&bus).await, 2);
}

/// The transaction inside of that of the store with levels.
fn relaybus_inner(tx: &mut levels::LevelTransaction) -> &mut MemoryTransaction {
    use relaybus::store::HandleOf as _;
    tx.handle()
}

#[tokio::test(start_paused = true)]
async fn the_handle_decides_and_not_what_runs_around() {
    let bus = bus_of(Levels::default());
    let result: Result = bus
        .transaction_at(IsolationLevel::Serializable, 1, async |_| {
            let mut other = bus.begin().await?;
            strict(relaybus_inner(other.store_transaction()), &bus).await
        })
        .await;
    let error = result.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_TRANSACTION_ISOLATION_CONFLICT", "another transaction is of another level");
    let nested: Result = bus
        .transaction_at(IsolationLevel::Serializable, 1, async |tx| {
            let tx = relaybus_inner(tx);
            bus.transaction(async |_| strict(&mut *tx, &bus).await).await
        })
        .await;
    nested.unwrap();
}

/// Notes the publishes that it is told of.
#[derive(Default)]
struct Told(Mutex<Vec<bool>>);

impl Observer for Told {
    fn interest(&self) -> Interest {
        Interest::PUBLISH
    }

    fn publish_finished(&self, report: &PublishFinished<'_>) {
        self.0.lock().unwrap().push(report.error.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn observers_hear_of_a_level_only_after_the_commit_that_counts() {
    let told = Arc::new(Told::default());
    let count = || std::mem::take(&mut *told.0.lock().unwrap()).len();
    let notes = Subscribe::to("notes", |_: Envelope<Note>, _| async {});
    let bus = RelayBus::builder(Levels::default()).observer(told.clone()).subscribe(notes).build().unwrap();
    let runs = Runs::default();
    assert_eq!(reserve(&bus, &bus, &runs, 2, note("a")).await, Ok(3));
    assert_eq!(count(), 1, "three runs, one that counts");
    runs.count();
    assert!(reserve(&bus, &bus, &runs, 9, note("a")).await.is_err());
    assert_eq!(count(), 0);
    let inside: Result<usize> = bus
        .transaction_at(IsolationLevel::Serializable, 1, async |tx| {
            bus.publish(tx, note("held")).await?;
            // relaybus-lint: allow(publish_detached): that it is not held back is what is tested
            bus.publish_detached(note("alone")).await?;
            Ok(count())
        })
        .await;
    assert_eq!(inside.unwrap(), 1, "one that is not part of the transaction is told at once");
    assert_eq!(count(), 1);
    let plain: Result<usize> = bus
        .transaction(async |tx| {
            bus.publish(tx, note("plain")).await?;
            Ok(count())
        })
        .await;
    assert_eq!(plain.unwrap(), 1, "without a level it is told at once");
}

#[tokio::test(start_paused = true)]
async fn the_commit_wakes_the_dispatcher() {
    let seen = Arc::new(Notify::new());
    let handled = seen.clone();
    let notes = Subscribe::to("notes", move |_: Envelope<Note>, _| {
        handled.notify_one();
        async {}
    });
    let clock = VirtualClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let bus = RelayBus::builder(Levels::default()).clock(clock).subscribe(notes).build().unwrap();
    bus.start().await.unwrap();
    let before = clock.now();
    strict(&bus, &bus).await.unwrap();
    seen.notified().await;
    assert_eq!(clock.now(), before, "it does not wait for the poll");
    bus.stop().await.unwrap();
}
