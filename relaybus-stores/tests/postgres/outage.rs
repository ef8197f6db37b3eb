//! A server of a test's own, two workers and a publisher on it, and what must be true after an outage.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use relaybus::{
    DispatcherOptions, Error, HandlerContext, Observer, RelayBus, Result, RetryPolicy, Stage, State, consumer,
};
use relaybus_stores::PostgresStore;
use relaybus_stores::postgres::PostgresStoreBuilder;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Row as _};

use crate::cluster::{self, Cluster, Keeper};

/// A worker's lease and its poll.
pub const LEASE: Duration = Duration::from_secs(3);
pub const POLL: Duration = Duration::from_millis(200);
/// Everything must be done this long after the outage: a lease, the margin, a poll, and room for a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);
const KEYS: u64 = 8;

const SETTINGS: &str = "fsync = off\nfull_page_writes = off\nshared_buffers = 32MB\nmax_connections = 60\n\
    autovacuum_naptime = 5\ndeadlock_timeout = 100ms\n";
const TABLES: &str =
    "CREATE TABLE business (number bigserial PRIMARY KEY, name text NOT NULL UNIQUE, key text NOT NULL);
    CREATE TABLE effects (number bigserial PRIMARY KEY, name text NOT NULL, key text NOT NULL)";

#[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
#[event("outage.moved.v1", key = key)]
struct Moved {
    name: String,
    key: String,
}

/// What handlers saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// The highest attempt.
    pub attempt: AtomicU64,
    pub noted: AtomicU64,
    /// Milliseconds that the transactional handler waits in the middle of its transaction.
    pub pause: AtomicU64,
}

#[consumer(Moved, id = "ledger", transactional)]
async fn ledger(event: &Moved, tx: &mut PgConnection, seen: State<Seen>, context: &HandlerContext) -> Result {
    seen.attempt.fetch_max(u64::from(context.attempt()), Ordering::Relaxed);
    effect(tx, event).await.map_err(|error| Error::store("no effect", Some(error.into())))?;
    let pause = seen.pause.load(Ordering::Relaxed);
    if pause > 0 {
        // sleep: the server's patience is what is tested.
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    Ok(())
}

async fn effect(tx: &mut PgConnection, event: &Moved) -> std::result::Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO effects (name, key) VALUES ($1, $2)");
    insert.bind(&event.name).bind(&event.key).execute(tx).await.map(drop)
}

#[consumer(Moved, id = "note")]
async fn note(_: &Moved, seen: State<Seen>, context: &HandlerContext) -> Result {
    seen.attempt.fetch_max(u64::from(context.attempt()), Ordering::Relaxed);
    seen.noted.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Counts what the dispatchers report.
#[derive(Debug, Default)]
pub struct Failures(AtomicU64);

impl Observer for Failures {
    fn failure(&self, _: Stage, _: &Error) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The server.
pub struct Server {
    pub cluster: Cluster,
    _keeper: Keeper,
    folder: tempfile::TempDir,
}

impl Server {
    /// A server that is not started yet.
    pub fn stopped() -> Self {
        let programs = cluster::programs().expect("no PostgreSQL: run `cargo xtask services up` once");
        let folder = tempfile::Builder::new().prefix("relaybus-outage-").tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let cluster = Cluster::create(programs, &folder.path().join("server"), SETTINGS).unwrap();
        Self { _keeper: cluster.keeper().unwrap(), cluster, folder }
    }

    pub async fn start() -> Self {
        let server = Self::stopped();
        server.cluster.start().unwrap();
        server.create_tables().await;
        server
    }

    pub async fn create_tables(&self) {
        sqlx::raw_sql(TABLES).execute(&mut self.connect().await).await.unwrap();
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub fn options(&self) -> PgConnectOptions {
        self.cluster.url().parse().unwrap()
    }

    /// A connection of a role whose settings are nobody's: that of the person who repairs.
    pub async fn connect(&self) -> PgConnection {
        self.options().connect().await.unwrap()
    }

    /// Changes settings of the running server.
    pub async fn set(&self, settings: &[(&str, Option<&str>)]) {
        let options = self.options().options([("default_transaction_read_only", "off"), ("statement_timeout", "0")]);
        let mut connection = options.connect().await.unwrap();
        for (name, value) in settings {
            let text = match value {
                Some(value) => format!("ALTER SYSTEM SET {name} = '{value}'"),
                None => format!("ALTER SYSTEM RESET {name}"),
            };
            sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&mut connection).await.unwrap();
        }
        sqlx::raw_sql("SELECT pg_reload_conf()").execute(&mut connection).await.unwrap();
    }

    pub fn store(&self) -> PostgresStoreBuilder {
        PostgresStore::with_options(self.options()).takeover_margin(Duration::from_millis(200)).max_connections(4)
    }
}

/// Two workers and a publisher.
pub struct Life {
    workers: Vec<RelayBus<PostgresStore>>,
    publisher: Option<tokio::task::JoinHandle<u64>>,
    stop: Arc<AtomicBool>,
    pub failures: Arc<Failures>,
    pub seen: Arc<Seen>,
}

fn bus(store: PostgresStore, seen: &Arc<Seen>, failures: &Arc<Failures>, works: bool) -> RelayBus<PostgresStore> {
    RelayBus::builder(store)
        .source("outage")
        .retry(RetryPolicy {
            attempts: None,
            initial_delay: Duration::from_millis(20),
            factor: 2.0,
            max_delay: Duration::from_millis(500),
        })
        .transaction_timeout("5s")
        .dispatcher(DispatcherOptions::default().enabled(works).lease(LEASE).poll_interval(POLL).concurrency(4))
        .handlers(relaybus::handlers![ledger, note])
        .provide_shared(Arc::clone(seen))
        .observer(failures.clone())
        .build()
        .unwrap()
}

impl Life {
    pub async fn start(server: &Server) -> Self {
        Self::start_on(
            server.store().build().unwrap(),
            [server.store().build().unwrap(), server.store().build().unwrap()],
        )
        .await
    }

    pub async fn start_on(publisher: PostgresStore, workers: [PostgresStore; 2]) -> Self {
        let (failures, seen) = (Arc::<Failures>::default(), Arc::<Seen>::default());
        let stop = Arc::new(AtomicBool::new(false));
        let workers = workers.map(|store| bus(store, &seen, &failures, true)).to_vec();
        for worker in &workers {
            worker.start().await.unwrap();
        }
        let publishes = bus(publisher, &seen, &failures, false);
        let ended = Arc::clone(&stop);
        let publisher = tokio::spawn(async move {
            publishes.start().await.unwrap();
            let mut answered = 0;
            for number in 0_u64.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                answered += u64::from(publish(&publishes, number).await.is_ok());
                // sleep: an application's pace.
                tokio::time::sleep(Duration::from_millis(4)).await;
            }
            let _ = publishes.stop().await;
            answered
        });
        Self { workers, publisher: Some(publisher), stop, failures, seen }
    }

    /// Deliveries go on.
    pub async fn warm_up(&self) {
        let began = Instant::now();
        while self.seen.noted.load(Ordering::Relaxed) < 50 {
            assert!(began.elapsed() < PATIENCE, "nothing is delivered");
            // sleep: handlers run in tasks of the dispatcher.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub fn reported(&self) -> u64 {
        self.failures.0.load(Ordering::Relaxed)
    }

    /// After the outage: all that was answered is there, each effect once and in order, and nobody had to be restarted.
    pub async fn all_is_well(mut self, server: &Server) {
        // sleep: life after the outage.
        tokio::time::sleep(Duration::from_millis(500)).await;
        self.stop.store(true, Ordering::Relaxed);
        let answered = self.publisher.take().unwrap().await.unwrap();
        let mut connection = server.connect().await;
        let began = Instant::now();
        loop {
            let left = "SELECT count(*) FROM relaybus_deliveries";
            let left: i64 = sqlx::query_scalar(left).fetch_one(&mut connection).await.unwrap();
            if left == 0 {
                break;
            }
            if began.elapsed() > PATIENCE {
                let rows = "SELECT to_jsonb(d)::text FROM relaybus_deliveries d ORDER BY id LIMIT 5";
                let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut connection).await.unwrap();
                panic!("{left} deliveries are left {PATIENCE:?} after the outage: {rows:#?}");
            }
            // sleep: the workers are not this test's.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let business = names(&mut connection, "business").await;
        let effects = names(&mut connection, "effects").await;
        let count: usize = business.values().map(Vec::len).sum();
        assert!(count as u64 >= answered && answered > 20, "{answered} answered, {count} are there");
        assert_eq!(business, effects, "effects once each, in the order of the commits of their key");
        for worker in self.workers {
            let stopped = worker.stop().await.unwrap();
            assert!(stopped.graceful, "{stopped:?}");
        }
        let left = "SELECT (SELECT count(*) FROM relaybus_sessions) + (SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%')";
        let left: i64 = sqlx::query_scalar(left).fetch_one(&mut connection).await.unwrap();
        assert_eq!(left, 0, "sessions and open transactions are left");
    }
}

async fn publish(bus: &RelayBus<PostgresStore>, number: u64) -> std::result::Result<(), relaybus::BoxError> {
    let (name, key) = (format!("e{number}"), format!("k{}", number % KEYS));
    bus.transaction(async |tx| {
        bus.publish(&mut *tx, Moved { name: name.clone(), key: key.clone() }).await?;
        // Behind the event, so that its number is in the order of the key's commits.
        let insert = sqlx::query("INSERT INTO business (name, key) VALUES ($1, $2)");
        insert.bind(&name).bind(&key).execute(&mut **tx).await?;
        Ok::<_, relaybus::BoxError>(())
    })
    .await
}

/// The names of a table in their order, by key.
async fn names(connection: &mut PgConnection, table: &str) -> HashMap<String, Vec<String>> {
    let text = format!("SELECT name, key FROM {table} ORDER BY number");
    let mut names: HashMap<String, Vec<String>> = HashMap::new();
    for row in sqlx::query(sqlx::AssertSqlSafe(text)).fetch_all(connection).await.unwrap() {
        names.entry(row.get(1)).or_default().push(row.get(0));
    }
    names
}
