//! Transactions that end otherwise than the bus meant: by their own code, with their connection, by a conflict with another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use relaybus::bus::IsSerializationFailure;
use relaybus::store::{DeliveryStatus, IsolationLevel};
use relaybus::{
    BoxError, DispatcherOptions, EventStore, HandlerContext, RelayBus, RetryPolicy, State, consumer, handlers,
};
use relaybus_stores::PostgresStore;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use crate::kit::Schema;

/// An event that says what its handler sends on its transaction.
#[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
#[event("ending.asked.v1")]
struct Asked {
    sql: String,
}

fn asked(sql: &str) -> Asked {
    Asked { sql: sql.to_owned() }
}

#[derive(Debug, Default)]
struct Seen {
    runs: AtomicU32,
    /// The highest attempt.
    attempt: AtomicU32,
}

/// Writes, sends, and succeeds whatever comes of it.
#[consumer(Asked, id = "sends", transactional)]
async fn sends(
    event: &Asked,
    tx: &mut PgConnection,
    seen: State<Seen>,
    context: &HandlerContext,
) -> Result<(), sqlx::Error> {
    seen.runs.fetch_add(1, Ordering::SeqCst);
    seen.attempt.fetch_max(context.attempt(), Ordering::SeqCst);
    let _ = sqlx::raw_sql("INSERT INTO effects VALUES (1)").execute(&mut *tx).await;
    let _ = sqlx::raw_sql(AssertSqlSafe(event.sql.clone())).execute(&mut *tx).await;
    Ok(())
}

async fn store(schema: &Schema) -> PostgresStore {
    let store = PostgresStore::with_options(crate::kit::options().options([("search_path", &*schema.name)]));
    let store = store.schema(&schema.name).max_connections(4).build().unwrap();
    store.setup().await.unwrap();
    let tables = "CREATE TABLE effects (n int); CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL); \
        INSERT INTO counters VALUES (1, 0), (2, 0)";
    sqlx::raw_sql(tables).execute(store.pool()).await.unwrap();
    store
}

fn bus(store: &PostgresStore, attempts: u32, seen: &Arc<Seen>) -> RelayBus<PostgresStore> {
    let soon = Duration::from_millis(10);
    RelayBus::builder(store.clone())
        .retry(RetryPolicy { attempts: Some(attempts), initial_delay: soon, factor: 1.0, max_delay: soon })
        .dispatcher(DispatcherOptions::default().enabled(false).poll_interval("50ms"))
        .handlers(handlers![sends])
        .provide_shared(Arc::clone(seen))
        .build()
        .unwrap()
}

async fn number(store: &PostgresStore, text: &'static str) -> i64 {
    sqlx::query_scalar(text).fetch_one(store.pool()).await.unwrap()
}

/// The error of the only delivery, which is dead.
async fn dead_letter(bus: &RelayBus<PostgresStore>) -> (u32, String) {
    let record = bus.list_deliveries(&relaybus::store::DeliveryQuery::all()).await.unwrap().deliveries.remove(0);
    assert_eq!(record.status, DeliveryStatus::Dead);
    (record.attempts, format!("{:?}", record.last_error))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_ends_its_transaction_is_told_so() {
    let endings = [
        ("ROLLBACK", 0),
        ("ROLLBACK; BEGIN", 0),
        ("ROLLBACK AND CHAIN", 0),
        ("COMMIT", 1),
        ("COMMIT; BEGIN", 1),
        ("COMMIT AND CHAIN", 1),
    ];
    for (sql, effects) in endings {
        let schema = Schema::new();
        let store = store(&schema).await;
        let bus = bus(&store, 1, &Arc::default());
        bus.publish_detached(asked(sql)).await.unwrap();
        bus.drain().await.unwrap();
        let (attempts, error) = dead_letter(&bus).await;
        assert!(error.contains("had ended before the bus could commit it"), "{sql}: {error}");
        assert_eq!((attempts, number(&store, "SELECT count(*) FROM effects").await), (1, effects), "{sql}");
        store.close().await.unwrap();
    }
}

/// Savepoints are the application's own: what is rolled back to one is inside the transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn savepoints_end_nothing() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let bus = bus(&store, 1, &Arc::default());
    let sql = "SAVEPOINT a; INSERT INTO effects VALUES (2); SAVEPOINT b; ROLLBACK TO a; RELEASE a; INSERT INTO effects VALUES (3)";
    bus.publish_detached(asked(sql)).await.unwrap();
    bus.drain().await.unwrap();
    let inside: Result<(), BoxError> = bus
        .transaction(async |tx| {
            let mut nested = Connection::begin(tx.connection()).await?;
            sqlx::raw_sql("INSERT INTO effects VALUES (4)").execute(&mut *nested).await?;
            nested.rollback().await?;
            let mut nested = Connection::begin(tx.connection()).await?;
            sqlx::raw_sql("INSERT INTO effects VALUES (5)").execute(&mut *nested).await?;
            nested.commit().await?;
            Ok(())
        })
        .await;
    inside.unwrap();
    assert_eq!(number(&store, "SELECT sum(n) FROM effects").await, 1 + 3 + 5);
    assert_eq!(number(&store, "SELECT count(*) FROM relaybus_deliveries").await, 0);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closure_that_ends_its_transaction_is_told_so() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let bus = bus(&store, 1, &Arc::default());
    for sql in ["ROLLBACK", "ROLLBACK; BEGIN", "COMMIT", "COMMIT; BEGIN"] {
        let ended: Result<(), BoxError> = bus
            .transaction(async |tx| {
                sqlx::raw_sql(sql).execute(tx.connection()).await?;
                Ok(())
            })
            .await;
        let error = ended.unwrap_err().to_string();
        assert!(error.contains("had ended before the bus could commit it"), "{sql}: {error}");
    }
    bus.transaction(async |tx| bus.publish(tx, asked("SELECT 1")).await).await.unwrap();
    assert_eq!(number(&store, "SELECT count(*) FROM relaybus_events").await, 1, "the next one works");
    store.close().await.unwrap();
}

/// At the commit, what was inserted here ends the backend.
const FATAL: &str = "CREATE TABLE fatal (n int); \
    CREATE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'; \
    CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON fatal DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ends()";

/// A handler that ends its own backend succeeds again and again, and never completes. It is not tried for ever, whether its
/// connection is gone when its completion is written, or the answer to its commit is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_ends_its_own_backend_becomes_a_dead_letter() {
    for sql in ["SELECT pg_terminate_backend(pg_backend_pid())", "INSERT INTO fatal VALUES (1)"] {
        let schema = Schema::new();
        let store = store(&schema).await;
        sqlx::raw_sql(FATAL).execute(store.pool()).await.unwrap();
        let seen = Arc::<Seen>::default();
        let bus = bus(&store, 2, &seen);
        bus.publish_detached(asked(sql)).await.unwrap();
        let mut free = 0;
        while number(&store, "SELECT count(*) FROM relaybus_deliveries WHERE dead").await == 0 {
            // By hand the first breaks are errors of the store; with a dispatcher it reports them.
            free += u32::from(bus.drain().await.is_err());
            assert!(free < 10, "{sql}: it is tried without end");
        }
        let (attempts, error) = dead_letter(&bus).await;
        assert!(error.contains("connection"), "{sql}: {error}");
        assert_eq!((attempts, free), (2, 3), "{sql}: three breaks are free, then each is an attempt");
        assert_eq!((seen.runs.load(Ordering::SeqCst), seen.attempt.load(Ordering::SeqCst)), (3 + 2, 2), "{sql}");
        assert_eq!(number(&store, "SELECT count(*) FROM effects").await, 0, "{sql}");
        store.close().await.unwrap();
    }
}

/// An error of an application that keeps those of sqlx and of the bus as its cause.
#[derive(Debug)]
struct AppError(BoxError);

impl std::fmt::Display for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the count failed")
    }
}

impl std::error::Error for AppError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl From<sqlx::Error> for AppError {
    fn from(error: sqlx::Error) -> Self {
        Self(error.into())
    }
}

impl From<relaybus::Error> for AppError {
    fn from(error: relaybus::Error) -> Self {
        Self(error.into())
    }
}

impl IsSerializationFailure for AppError {
    fn is_serialization_failure(&self) -> bool {
        false
    }

    fn as_error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self)
    }
}

/// Reads a counter, is overtaken by another transaction in its first run, and counts. How often it ran, and how it ended.
async fn count_at<E>(store: &PostgresStore, level: IsolationLevel) -> (u32, Result<(), E>)
where
    E: From<sqlx::Error> + From<relaybus::Error> + IsSerializationFailure + Send,
{
    let bus = bus(store, 1, &Arc::default());
    let (runs, service) = (AtomicU32::new(0), &bus);
    let (counted, pool) = (&runs, store.pool());
    let ended = bus
        .transaction_at(level, 3, async move |tx| -> Result<(), E> {
            let read = "SELECT n FROM counters WHERE id = 1";
            let n: i32 = sqlx::query_scalar(read).fetch_one(tx.connection()).await?;
            if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                let mut other = pool.begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
                sqlx::query("UPDATE counters SET n = n + 1 WHERE id = 1").execute(&mut *other).await?;
                other.commit().await?;
            }
            service.publish(tx, asked("SELECT 1")).await?;
            let write = sqlx::query("UPDATE counters SET n = $1 + 1 WHERE id = 1").bind(n);
            write.execute(tx.connection()).await?;
            Ok(())
        })
        .await;
    (runs.into_inner(), ended)
}

/// As [`count_at`], by the macro.
#[relaybus::transaction(isolation = "serializable", attempts = 3)]
async fn count(tx: &mut PgConnection, pool: &sqlx::PgPool, runs: &AtomicU32) -> Result<(), AppError> {
    let read = "SELECT n FROM counters WHERE id = 2";
    let n: i32 = sqlx::query_scalar(read).fetch_one(&mut *tx).await?;
    if runs.fetch_add(1, Ordering::SeqCst) == 0 {
        sqlx::query("UPDATE counters SET n = n + 1 WHERE id = 2").execute(pool).await?;
    }
    sqlx::query("UPDATE counters SET n = $1 + 1 WHERE id = 2").bind(n).execute(&mut *tx).await?;
    Ok(())
}

/// The conflict is met by a statement of the application, whose error comes back as its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_in_a_query_of_the_application_runs_it_again() {
    let schema = Schema::new();
    let store = store(&schema).await;
    for level in [IsolationLevel::Serializable, IsolationLevel::RepeatableRead] {
        let (runs, ended) = count_at::<AppError>(&store, level).await;
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(runs, 2, "{level:?}, an error type of its own");
        let (runs, ended) = count_at::<BoxError>(&store, level).await;
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(runs, 2, "{level:?}, a boxed error");
    }
    let (bus, runs) = (bus(&store, 1, &Arc::default()), AtomicU32::new(0));
    count(&bus, store.pool(), &runs).await.unwrap();
    assert_eq!((runs.into_inner(), number(&store, "SELECT n::bigint FROM counters WHERE id = 2").await), (2, 2));
    assert_eq!(number(&store, "SELECT n::bigint FROM counters WHERE id = 1").await, 4 * 2, "no count is lost");
    assert_eq!(number(&store, "SELECT count(*) FROM relaybus_events").await, 4, "one event of each");
    store.close().await.unwrap();
}

/// A deadlock is not a serialization failure: whoever wants to run it again decides so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_does_not_run_it_again() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let bus = bus(&store, 1, &Arc::default());
    let (runs, pool) = (AtomicU32::new(0), store.pool());
    let (counted, touch) = (&runs, |id: i32| format!("UPDATE counters SET n = n + 1 WHERE id = {id}"));
    let ended = bus
        .transaction_at(IsolationLevel::Serializable, 3, async move |tx| -> Result<(), BoxError> {
            counted.fetch_add(1, Ordering::SeqCst);
            sqlx::raw_sql("SET LOCAL deadlock_timeout = '50ms'").execute(tx.connection()).await?;
            sqlx::raw_sql(AssertSqlSafe(touch(1))).execute(tx.connection()).await?;
            let mut other = pool.begin().await?;
            sqlx::raw_sql("SET LOCAL deadlock_timeout = '20s'").execute(&mut *other).await?;
            sqlx::raw_sql(AssertSqlSafe(touch(2))).execute(&mut *other).await?;
            let waits = tokio::spawn(async move {
                let _ = sqlx::raw_sql(AssertSqlSafe(touch(1))).execute(&mut *other).await;
            });
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE 'UPDATE counters%'";
            while sqlx::query_scalar::<_, i64>(waiting).fetch_one(pool).await? == 0 {
                tokio::task::yield_now().await;
            }
            let met = sqlx::raw_sql(AssertSqlSafe(touch(2))).execute(tx.connection()).await;
            sqlx::raw_sql("ROLLBACK").execute(tx.connection()).await?;
            waits.await?;
            met?;
            Ok(())
        })
        .await;
    let error = ended.unwrap_err();
    let code = error.downcast_ref::<sqlx::Error>().and_then(|error| error.as_database_error()?.code()).unwrap();
    assert_eq!((&*code, runs.into_inner()), ("40P01", 1));
    store.close().await.unwrap();
}
