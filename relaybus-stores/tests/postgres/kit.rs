//! What the tests of this store share: a server, schemas, events, sessions, turns.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaybus::store::{
    AppendBatch, ClaimRequest, Claimed, Completed, HandlerSlots, NewEvent, Run, RunPart, SessionRequest, Settled,
    Settlement, Turn, TurnRequest,
};
use relaybus::{
    Envelope, EventId, EventStore, EventType, HandlerId, Headers, OrderingKey, RawPayload, Result, Timestamp,
};
use relaybus_stores::PostgresStore;
use relaybus_stores::postgres::{PostgresSession, PostgresStoreBuilder};
use relaybus_testing::StoreFactory;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};

/// The address of the server: the variable, or what `cargo xtask services up` started.
pub fn url() -> String {
    if let Ok(url) = std::env::var("RELAYBUS_TEST_POSTGRES_URL")
        && !url.is_empty()
    {
        return url;
    }
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "tests".to_owned());
    let file = std::env::temp_dir().join(format!("relaybus-postgres-{user}/data/postmaster.pid"));
    let port = std::fs::read_to_string(&file).ok().and_then(|text| text.lines().nth(3).map(str::to_owned));
    let port = port.expect("no PostgreSQL: run `cargo xtask services up`, or set RELAYBUS_TEST_POSTGRES_URL");
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

pub fn options() -> PgConnectOptions {
    url().parse().expect("the address of the server")
}

/// A connection that no store knows of.
pub async fn connect() -> PgConnection {
    options().connect().await.expect("the server")
}

/// A schema of its own, dropped at the end.
pub struct Schema {
    pub name: String,
}

impl Schema {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        Self { name: format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)) }
    }

    pub fn builder(&self) -> PostgresStoreBuilder {
        builder(&self.name)
    }
}

/// A store in `schema`, with few connections.
pub fn builder(schema: &str) -> PostgresStoreBuilder {
    PostgresStore::builder(url()).schema(schema).max_connections(4)
}

/// Stores for the contract suite, in schemas that are dropped with the factory; peers have connections of their own.
pub struct SchemaFactory {
    schemas: Mutex<Vec<Schema>>,
    /// What opens a store in a schema.
    open: fn(&str) -> PostgresStoreBuilder,
}

impl SchemaFactory {
    pub fn new(open: fn(&str) -> PostgresStoreBuilder) -> Self {
        Self { schemas: Mutex::default(), open }
    }

    fn open(&self, schema: &str) -> PostgresStore {
        (self.open)(schema).build().expect("a store")
    }
}

impl StoreFactory for SchemaFactory {
    type Store = PostgresStore;

    async fn create(&self) -> PostgresStore {
        let schema = Schema::new();
        let store = self.open(&schema.name);
        self.schemas.lock().unwrap().push(schema);
        store.setup().await.expect("setup");
        store
    }

    async fn peer(&self, store: &PostgresStore) -> Option<PostgresStore> {
        Some(self.open(store.schema()))
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("DROP SCHEMA IF EXISTS \"{}\" CASCADE", self.name);
        // A test may end inside its own runtime: the schema is dropped from another thread, with a runtime of its own.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut connection = connect().await;
                sqlx::query("SET lock_timeout = '10s'").execute(&mut connection).await.unwrap();
                sqlx::query("SET client_min_messages = warning").execute(&mut connection).await.unwrap();
                sqlx::query(AssertSqlSafe(drop)).execute(&mut connection).await
            })
        });
        let _ = dropped.join();
    }
}

/// The lease of the sessions of these tests.
pub const LEASE: Duration = Duration::from_secs(30);

/// Seconds after an arbitrary start.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000 + seconds * 1_000_000)
}

/// When a session opened at second 0 is dead for every store.
pub fn after_the_lease() -> Timestamp {
    at(660)
}

pub fn handler(name: &str) -> HandlerId {
    HandlerId::new(name).unwrap()
}

/// An event for `handlers`, due at once.
pub fn event(id: &str, key: Option<&str>, handlers: &[&str], now: Timestamp) -> NewEvent {
    let payload = RawPayload::stored(format!("\"{}\"", "x".repeat(158)));
    let mut envelope =
        Envelope::new(EventId::new(id).unwrap(), EventType::new("test.happened").unwrap(), "tests", payload, now);
    envelope.key = key.map(|key| OrderingKey::new(key).unwrap());
    let trace = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    envelope.headers = Headers::new(trace).unwrap();
    NewEvent::new(envelope, Arc::from(handlers.iter().map(|name| handler(name)).collect::<Vec<_>>()), now)
}

/// `count` events with ids as the bus makes them, numbered from `from` on.
pub fn fresh(
    from: u64,
    count: u64,
    key: impl Fn(u64) -> Option<String>,
    handlers: &[&str],
    now: Timestamp,
) -> AppendBatch {
    let events = (from..from + count).map(|number| {
        let id = format!("01890000-0000-7000-8000-{number:012x}");
        let mut new = event(&id, key(number).as_deref(), handlers, now);
        new.fresh_id = true;
        new
    });
    AppendBatch::new(events.collect(), now)
}

/// One event with the caller's own id.
pub fn any_id(number: u64, now: Timestamp) -> AppendBatch {
    let id = format!("01890000-0000-7000-8000-{number:012x}");
    AppendBatch::new(vec![event(&id, None, &["h"], now)], now)
}

/// Events by their ids, for handler `h`.
pub fn named(ids: &[&str], key: Option<&str>, now: Timestamp) -> AppendBatch {
    AppendBatch::new(ids.iter().map(|id| event(id, key, &["h"], now)).collect(), now)
}

/// A session that a test drives by hand.
pub struct Worker {
    pub store: PostgresStore,
    pub session: PostgresSession,
    pub slots: Vec<HandlerSlots>,
}

impl Worker {
    pub async fn new(store: &PostgresStore, handlers: &[&str], now: Timestamp) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let ids: Vec<HandlerId> = handlers.iter().map(|name| handler(name)).collect();
        let owner = format!("worker-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let session = store.open_session(&SessionRequest::new(owner, ids.clone(), LEASE, now)).await.unwrap();
        let slots = ids.into_iter().map(|id| HandlerSlots::new(id, 1_000)).collect();
        Self { store: store.clone(), session, slots }
    }

    /// Completes and claims, without a sweep and without a renewal.
    pub async fn turn(&mut self, done: &[Completed], limit: usize, run_length: usize, now: Timestamp) -> Result<Turn> {
        let mut request = TurnRequest::new(now).completing(done);
        if limit > 0 {
            request = request.claiming(ClaimRequest::new(&self.slots, limit, run_length));
        }
        self.store.turn(&mut self.session, &request).await
    }

    /// As [`Worker::turn`], and looks at the other sessions.
    pub async fn sweep(&mut self, done: &[Completed], limit: usize, now: Timestamp) -> Result<Turn> {
        let mut request = TurnRequest::new(now).completing(done);
        request.claim = Some(ClaimRequest::new(&self.slots, limit, 1));
        request.renew = Some(now.after(LEASE));
        request.sweep = true;
        self.store.turn(&mut self.session, &request).await
    }

    /// Takes turns until nothing comes, and what came.
    pub async fn claim(&mut self, limit: usize, now: Timestamp) -> Vec<Claimed> {
        let mut all = Vec::new();
        for _ in 0..6 {
            let turn = self.sweep(&[], limit, now).await.unwrap();
            all.extend(turn.runs.into_iter().flat_map(|run| run.deliveries));
        }
        all
    }

    pub async fn complete(&mut self, claimed: &Claimed, now: Timestamp) -> Settled {
        let done = [Completed::new(claimed.lease.clone(), RunPart::Last)];
        self.turn(&done, 0, 1, now).await.unwrap().completed[0]
    }

    pub async fn settle(&mut self, settlement: Settlement, now: Timestamp) -> Settled {
        self.store.settle(&mut self.session, &[settlement], now).await.unwrap()[0]
    }

    pub async fn close(self, now: Timestamp) {
        self.store.close_session(self.session, now).await.unwrap();
    }
}

/// Completes every run to its end in one go.
pub fn completions(runs: &[Run]) -> Vec<Completed> {
    let mut done = Vec::new();
    for run in runs {
        for (place, claimed) in run.deliveries.iter().enumerate() {
            let part = if place + 1 == run.deliveries.len() { RunPart::Last } else { RunPart::Continues };
            done.push(Completed::new(claimed.lease.clone(), part));
        }
    }
    done
}

pub fn ids(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|claimed| claimed.event.id.as_str()).collect()
}
