//! What callers do wrong with transactions: each is refused at once, with words that say what to do.

use std::time::{Duration, Instant};

use relaybus::store::{DeliveryQuery, DeliveryRecord, DeliveryStatus};
use relaybus::{AnyTransaction, DispatcherOptions, Error, Event, RelayBus, Result, State, consumer, handlers};
use relaybus_stores::SqliteStore;
use relaybus_stores::sqlite::SqliteTransaction;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use crate::kit::Fixture;

#[derive(Clone, Debug, Event, Serialize, Deserialize)]
#[event("note.written.v1")]
struct Note {
    text: String,
}

fn note(text: &str) -> Note {
    Note { text: text.to_owned() }
}

/// A bus on the fixture's file that dispatches nothing by itself.
fn bus_on(store: &SqliteStore) -> RelayBus<SqliteStore> {
    let options = DispatcherOptions::default().enabled(false);
    RelayBus::builder(store.clone()).dispatcher(options).handlers(handlers![detached]).build().unwrap()
}

async fn stored(fixture: &Fixture) -> i64 {
    let mut reader = fixture.store.reader().await.unwrap();
    sqlx::query_scalar("SELECT count(*) FROM relaybus_events").fetch_one(&mut *reader).await.unwrap()
}

/// The future is refused for being inside a transaction, long before any budget.
async fn refused_inside<T>(what: &str, call: impl Future<Output = Result<T>>) {
    let began = Instant::now();
    let error = call.await.err().unwrap_or_else(|| panic!("`{what}` waits for itself"));
    assert_eq!(error.code(), "RELAYBUS_TRANSACTION_REQUIRED", "{what}: {error}");
    assert!(error.to_string().contains("from inside a transaction"), "{what}: {error}");
    assert!(began.elapsed() < Duration::from_secs(1), "{what} took {:?}", began.elapsed());
}

#[consumer(Note, id = "detached", transactional, retry(attempts = 1))]
async fn detached(_: &Note, _: &mut SqliteConnection, bus: State<RelayBus<SqliteStore>>) -> Result {
    // relaybus-lint: allow(publish_detached): that it is refused is what is tested
    bus.publish_detached(note("from a handler")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_wait_for_its_own_transaction_is_refused_at_once() {
    let fixture = Fixture::new().await;
    let bus = bus_on(&fixture.store);
    // Another bus on the same file waits just as well.
    let peer = bus_on(&fixture.peer().await);
    for bus in [&bus, &peer] {
        let kept: Result<()> = peer
            .transaction(async |tx| {
                // relaybus-lint: allow(publish_detached): that it is refused is what is tested
                refused_inside("publish_detached", bus.publish_detached(note("a")).into_future()).await;
                // relaybus-lint: allow(publish_detached): that it is refused is what is tested
                refused_inside("publish_all_detached", bus.publish_all_detached([note("b")]).into_future()).await;
                refused_inside("transaction", bus.transaction(async |_| Ok(()))).await;
                refused_inside("begin", bus.begin()).await;
                refused_inside("any().begin", async { bus.any().begin().await }).await;
                refused_inside("drain", bus.drain()).await;
                refused_inside("setup", relaybus::EventStore::setup(bus.store())).await;
                peer.publish(tx, note("kept")).await?;
                Ok(())
            })
            .await;
        kept.unwrap();
    }
    assert_eq!(stored(&fixture).await, 2, "nothing that was refused is committed later");
    bus.publish_detached(note("after it")).await.unwrap();
    assert_eq!(stored(&fixture).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_publishes_beside_its_transaction_fails_with_these_words() {
    let fixture = Fixture::new().await;
    let bus = bus_on(&fixture.store);
    bus.publish_detached(note("first")).await.unwrap();
    let began = Instant::now();
    bus.drain().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "it took {:?}", began.elapsed());
    let dead = dead_letter(&bus).await;
    assert!(dead.contains("RELAYBUS_TRANSACTION_REQUIRED") && dead.contains("bus.publish(tx, ..)"), "{dead}");
    assert_eq!(stored(&fixture).await, 1);
}

/// What a handler sends on its transaction, by the text of its event.
#[consumer(Note, id = "sends", transactional, retry(attempts = 1))]
async fn sends(event: &Note, tx: &mut SqliteConnection) -> std::result::Result<(), sqlx::Error> {
    tx.execute("CREATE TABLE IF NOT EXISTS effects (x)").await?;
    tx.execute("INSERT INTO effects VALUES (1)").await?;
    tx.execute(AssertSqlSafe(event.text.clone())).await.map(|_| ())
}

fn bus_that_sends(store: &SqliteStore) -> RelayBus<SqliteStore> {
    let options = DispatcherOptions::default().enabled(false);
    RelayBus::builder(store.clone()).dispatcher(options).handlers(handlers![sends]).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_ends_its_transaction_is_told_so() {
    for text in ["ROLLBACK", "COMMIT", "ROLLBACK; BEGIN IMMEDIATE", "COMMIT; BEGIN IMMEDIATE"] {
        let fixture = Fixture::new().await;
        let bus = bus_that_sends(&fixture.store);
        bus.publish_detached(note(text)).await.unwrap();
        bus.drain().await.unwrap();
        let dead = dead_letter(&bus).await;
        assert!(dead.contains("had ended before the bus could commit it"), "{text}: {dead}");
        assert!(!dead.contains("LEASE_LOST"), "{text}: {dead}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closure_that_ends_its_transaction_is_told_so() {
    let fixture = Fixture::new().await;
    let bus = bus_on(&fixture.store);
    for text in ["ROLLBACK", "COMMIT"] {
        let ended: std::result::Result<(), relaybus::BoxError> =
            bus.transaction(async |tx| Ok(tx.execute(text).await.map(|_| ())?)).await;
        let error = ended.unwrap_err().to_string();
        assert!(error.contains("had ended before the bus could commit it"), "{text}: {error}");
    }
    bus.transaction(async |tx| bus.publish(tx, note("the next one works")).await).await.unwrap();
    assert_eq!(stored(&fixture).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_handler_changes_on_its_connection_meets_nobody_else() {
    let changes = [
        "PRAGMA query_only = ON",
        "PRAGMA locking_mode = EXCLUSIVE",
        "PRAGMA busy_timeout = 0",
        "PRAGMA foreign_keys = ON; COMMIT; PRAGMA foreign_keys = ON",
        "PRAGMA recursive_triggers = ON",
        "PRAGMA ignore_check_constraints = ON",
        "CREATE TEMP TABLE relaybus_events (x)",
        "CREATE TEMP TRIGGER mine AFTER INSERT ON main.relaybus_events BEGIN SELECT RAISE(ABORT, 'mine'); END",
        "ATTACH ':memory:' AS other",
    ];
    for change in changes {
        let fixture = Fixture::new().await;
        let bus = bus_that_sends(&fixture.store);
        bus.publish_detached(note(change)).await.unwrap();
        bus.drain().await.unwrap();
        for _ in 0..20 {
            let published: std::result::Result<(), relaybus::BoxError> = bus
                .transaction(async |tx| {
                    let seen = "SELECT (SELECT query_only FROM pragma_query_only) || (SELECT locking_mode FROM pragma_locking_mode) \
                        || (SELECT timeout FROM pragma_busy_timeout) || (SELECT foreign_keys FROM pragma_foreign_keys) \
                        || (SELECT count(*) FROM pragma_database_list) || (SELECT count(*) FROM sqlite_temp_schema)";
                    let state: String = sqlx::query_scalar(seen).fetch_one(&mut **tx).await?;
                    assert_eq!(state, "0normal5000020", "{change}");
                    bus.publish(tx, note("SELECT 1")).await?;
                    Ok(())
                })
                .await;
            published.unwrap_or_else(|error| panic!("{change}: {error}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_nobody_changed_is_used_again() {
    let fixture = Fixture::new().await;
    let bus = bus_on(&fixture.store);
    let mut most = 0;
    for _ in 0..40 {
        let changes: Result<i64> = bus
            .transaction(async |tx| {
                bus.publish(tx, note("a")).await?;
                let changes = sqlx::query_scalar("SELECT total_changes()").fetch_one(&mut **tx).await;
                changes.map_err(|error| Error::Handler { source: error.into() })
            })
            .await;
        most = most.max(changes.unwrap());
    }
    assert!(most > 6, "no connection has made more than {most} changes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_open_on_a_reader_meets_nobody_else() {
    let fixture = Fixture::new().await;
    let bus = bus_on(&fixture.store);
    for _ in 0..6 {
        let mut reader = fixture.store.reader().await.unwrap();
        reader.execute("BEGIN; SELECT count(*) FROM relaybus_events; PRAGMA query_only = OFF").await.unwrap();
        drop(reader);
        bus.publish_detached(note("a")).await.unwrap();
        let published = bus.statistics().await.unwrap().pending;
        assert_eq!(stored(&fixture).await, i64::try_from(published).unwrap(), "a reader sees an old state");
    }
}

#[tokio::test]
async fn after_a_stop_every_call_says_so() {
    let fixture = Fixture::new().await;
    let bus = bus_on(&fixture.store);
    bus.start().await.unwrap();
    bus.stop().await.unwrap();
    let all = DeliveryQuery::all();
    let answers = [
        ("publish_detached", bus.publish_detached(note("a")).await.err()),
        ("transaction", bus.transaction(async |_| Ok(())).await.err()),
        ("begin", bus.begin().await.err()),
        ("statistics", bus.statistics().await.err()),
        ("list_deliveries", bus.list_deliveries(&all).await.err()),
        ("drain", bus.drain().await.err()),
        ("reader", bus.store().reader().await.err()),
    ];
    for (call, error) in answers {
        let error = error.unwrap_or_else(|| panic!("`{call}` works on a closed store"));
        assert_eq!(error.code(), "RELAYBUS_LIFECYCLE", "{call}: {error}");
        assert!(
            error.to_string().contains("stopping its bus") && !error.to_string().contains("see the cause"),
            "{error}"
        );
    }
}

async fn dead_letter(bus: &RelayBus<SqliteStore>) -> String {
    let page = bus.list_deliveries(&DeliveryQuery::all().status(DeliveryStatus::Dead)).await.unwrap();
    let dead: &DeliveryRecord = page.deliveries.first().expect("a dead letter");
    dead.last_error.clone().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_task_does_beside_its_transaction_waits_its_turn() {
    let fixture = Fixture::new().await;
    let bus = bus_on(&fixture.store);
    let inside = bus.transaction(async |tx| -> Result<()> {
        bus.publish(tx, note("inside")).await?;
        // Lets the other one ask for the lock.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        Ok(())
    });
    let (inside, beside) = tokio::join!(inside, bus.publish_detached(note("beside")).into_future());
    inside.unwrap();
    beside.unwrap();
    assert_eq!(stored(&fixture).await, 2);
}

#[tokio::test]
async fn a_connection_without_a_transaction_publishes_nothing() {
    let fixture = Fixture::new().await;
    let bus = bus_on(&fixture.store);
    let mut connection = SqliteConnectOptions::new().filename(fixture.store.path()).connect().await.unwrap();
    let error = bus.publish(&mut connection, note("a")).await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_TRANSACTION_REQUIRED");
    assert!(
        error.to_string().contains("`note.written.v1`") && error.to_string().contains("publish_detached"),
        "{error}"
    );
    assert_eq!(stored(&fixture).await, 0);

    // However the transaction was begun, it is one; and the look leaves none behind.
    connection.execute("BEGIN IMMEDIATE").await.unwrap();
    bus.publish(&mut connection, note("by hand")).await.unwrap();
    connection.execute("COMMIT").await.unwrap();
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
    bus.publish(&mut tx, note("by the client")).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(stored(&fixture).await, 2);
    let error = bus.publish(&mut connection, note("b")).await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_TRANSACTION_REQUIRED");
}

#[tokio::test]
async fn a_transaction_of_another_file_is_refused_and_stays_usable() {
    let (ours, theirs) = (Fixture::new().await, Fixture::new().await);
    let (our_bus, their_bus) = (bus_on(&ours.store), bus_on(&theirs.store));
    let refused = |error: Error| {
        assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
        assert!(error.to_string().contains("belongs to another database"), "{error}");
    };
    let published: Result<()> = their_bus
        .transaction(async |tx: &mut SqliteTransaction| {
            refused(our_bus.publish(tx, note("a")).await.unwrap_err());
            their_bus.publish(tx, note("b")).await?;
            Ok(())
        })
        .await;
    published.unwrap();
    let published: Result<()> = their_bus
        .any()
        .transaction(async |tx: &mut AnyTransaction| {
            refused(our_bus.any().publish(tx, note("a")).await.unwrap_err());
            their_bus.any().publish(tx, note("b")).await?;
            Ok(())
        })
        .await;
    published.unwrap();
    assert_eq!((stored(&ours).await, stored(&theirs).await), (0, 2));
}
