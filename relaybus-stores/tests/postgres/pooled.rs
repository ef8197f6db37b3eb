//! Through PgBouncer: the contract, what is found out and said, what is told to others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use relaybus::EventStore;
use relaybus::store::{HandleOf, WakeUp};
use relaybus_stores::PostgresStore;
use relaybus_stores::postgres::{PostgresStoreBuilder, WakeUpMode};
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::sync::Notify;

use crate::kit::{self, LEASE, Schema, SchemaFactory, Worker, at, completions, fresh, ids, named};
use crate::log::Warnings;
use crate::pgbouncer::{self, Pooler};

/// What an operator sets who knows what clients send.
const IGNORING: &str = "ignore_startup_parameters = extra_float_digits,options";
const NOT_KEPT: &str = "does not keep prepared statements";

fn start(settings: &str) -> Pooler {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let program = pgbouncer::program().expect("no PgBouncer: install `pgbouncer`, or run `cargo xtask test`");
    let name = format!("relaybus-pgbouncer-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let server = kit::options();
    let server = (server.get_host(), server.get_port());
    Pooler::start(&program, &std::env::temp_dir().join(name), server, settings).expect("PgBouncer starts")
}

/// One pooler that ignores what it does not know, and one that refuses it. Both end with this process.
fn options(ignoring: bool) -> PgConnectOptions {
    static POOLERS: [OnceLock<Pooler>; 2] = [OnceLock::new(), OnceLock::new()];
    let running = POOLERS[usize::from(ignoring)].get_or_init(|| start(if ignoring { IGNORING } else { "" }));
    kit::options().host("127.0.0.1").port(running.port())
}

fn builder(ignoring: bool, schema: &str) -> PostgresStoreBuilder {
    PostgresStore::with_options(options(ignoring)).schema(schema).max_connections(4)
}

relaybus_testing::store_contract! {
    mod told;
    factory = SchemaFactory::new(|schema| builder(true, schema).prepared_statements(false).wake_up(WakeUpMode::Poll));
}

relaybus_testing::store_contract! {
    mod forgotten;
    factory = SchemaFactory::new(|schema| builder(false, schema));
}

async fn works(store: &PostgresStore, id: &str) {
    store.append_alone(&named(&[id], Some("k"), at(0))).await.unwrap();
    let mut worker = Worker::new(store, &["h"], at(1)).await;
    let claimed = worker.claim(10, at(1)).await;
    assert_eq!(ids(&claimed), [id]);
    assert_eq!(worker.complete(&claimed[0], at(2)).await, relaybus::store::Settled::Applied);
    worker.close(at(2)).await;
}

/// Whoever forgets to tell is told, once, and loses nothing.
#[tokio::test]
async fn a_pooler_is_found_before_the_first_statement() {
    for ignoring in [true, false] {
        let schema = Schema::new();
        let warnings = Warnings::collect();
        let store = builder(ignoring, &schema.name).build().unwrap();
        store.setup().await.unwrap();
        assert!(!store.prepares_statements());
        assert!(!store.capabilities().reports_commits, "nothing is heard through it");
        for n in 0..30 {
            works(&store, &format!("e{n}")).await;
        }
        assert_eq!(warnings.count(NOT_KEPT), 1);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn nothing_is_said_to_who_told_or_connects_directly() {
    let schema = Schema::new();
    let warnings = Warnings::collect();
    let told = builder(true, &schema.name).prepared_statements(false).wake_up(WakeUpMode::Poll).build().unwrap();
    told.setup().await.unwrap();
    works(&told, "a").await;
    let direct = schema.builder().build().unwrap();
    direct.verify().await.unwrap();
    works(&direct, "b").await;
    assert!(!told.prepares_statements() && direct.prepares_statements() && direct.capabilities().reports_commits);
    assert_eq!(warnings.count(""), 0);
    told.close().await.unwrap();
    direct.close().await.unwrap();
}

/// PgBouncer in session mode gives each connection a session: all works but the settings of the start.
#[tokio::test]
async fn a_pooler_in_session_mode_is_told_apart() {
    let schema = Schema::new();
    let running = start("pool_mode = session\nserver_reset_query = DISCARD ALL");
    let warnings = Warnings::collect();
    let options = kit::options().host("127.0.0.1").port(running.port());
    let store = PostgresStore::with_options(options).schema(&schema.name).max_connections(4).build().unwrap();
    store.setup().await.unwrap();
    assert!(store.prepares_statements() && store.capabilities().reports_commits);
    works(&store, "e").await;
    assert_eq!(warnings.count(""), 0);
    store.close().await.unwrap();
}

/// A pooler that appears later, as after a change of an address: the statement that meets it is run again, and none is prepared
/// from there on.
#[tokio::test]
async fn statements_that_are_gone_are_no_failure() {
    let schema = Schema::new();
    let warnings = Warnings::collect();
    let pool = PgPoolOptions::new().max_connections(1).connect_with(kit::options()).await.unwrap();
    let store = PostgresStore::with_pool(pool.clone()).schema(&schema.name).build().unwrap();
    store.setup().await.unwrap();
    // What is large goes by the pool.
    let large = |from: u64| fresh(from, 101, |_| None, &["other"], at(0));
    store.append_alone(&large(0)).await.unwrap();
    works(&store, "a").await;
    sqlx::raw_sql("DEALLOCATE ALL").execute(&pool).await.unwrap();
    assert_eq!(store.append_alone(&large(1_000)).await.unwrap().outcomes.len(), 101);
    assert!(!store.prepares_statements());
    works(&store, "b").await;
    assert_eq!(warnings.count(NOT_KEPT), 1);
    store.close().await.unwrap();
}

/// Nobody listens through the pooler, but what is published through it is heard by those who connect directly.
#[tokio::test]
async fn a_publisher_behind_a_pooler_wakes_a_worker_in_front_of_it() {
    let schema = Schema::new();
    let (publisher, worker) = (builder(true, &schema.name).build().unwrap(), schema.builder().build().unwrap());
    publisher.setup().await.unwrap();
    worker.verify().await.unwrap();
    let signal = Arc::new(Notify::new());
    let wake: WakeUp = Arc::new({
        let signal = Arc::clone(&signal);
        move || signal.notify_one()
    });
    let guard = worker.watch(wake).await.unwrap();
    publisher.append_alone(&named(&["alone"], None, at(0))).await.unwrap();
    let soon = Duration::from_secs(10);
    tokio::time::timeout(soon, signal.notified()).await.expect("a wake-up");
    while tokio::time::timeout(Duration::from_millis(200), signal.notified()).await.is_ok() {}
    let mut connection = sqlx::ConnectOptions::connect(&options(true).extra_float_digits(None)).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    publisher.append(tx.handle(), &named(&["within"], None, at(0))).await.unwrap();
    while tokio::time::timeout(Duration::from_millis(200), signal.notified()).await.is_ok() {}
    tx.commit().await.unwrap();
    tokio::time::timeout(soon, signal.notified()).await.expect("a wake-up at the commit");
    drop(guard);
    publisher.close().await.unwrap();
    worker.close().await.unwrap();
}

/// Many at once, with more clients than sessions: each event once, in the order of its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_share_few_sessions() {
    const KEYS: u64 = 5;
    const EVENTS: u64 = 60;
    let schema = Schema::new();
    let running = start("default_pool_size = 3");
    let options = kit::options().host("127.0.0.1").port(running.port());
    let make = || PostgresStore::with_options(options.clone()).schema(&schema.name).max_connections(6).build().unwrap();
    let first = make();
    first.setup().await.unwrap();
    let mut tasks = Vec::new();
    for key in 0..KEYS {
        let store = make();
        tasks.push(tokio::spawn(async move {
            for n in 0..EVENTS {
                store.append_alone(&named(&[&format!("{key}-{n:03}")], Some(&format!("k{key}")), at(0))).await.unwrap();
            }
            store.close().await.unwrap();
        }));
    }
    let mut workers = Vec::new();
    for _ in 0..3 {
        let store = make();
        workers.push(tokio::spawn(async move {
            let mut worker = Worker::new(&store, &["h"], at(1)).await;
            let (mut seen, mut idle, mut done) = (Vec::new(), 0, Vec::new());
            while idle < 40 {
                let turn = worker.sweep(&done, 10, at(1)).await.unwrap();
                done = completions(&turn.runs);
                idle = if turn.runs.is_empty() { idle + 1 } else { 0 };
                seen.extend(
                    turn.runs.iter().flat_map(|run| run.deliveries.iter()).map(|one| one.event.id.as_str().to_owned()),
                );
                tokio::time::sleep(Duration::from_millis(5)).await; // sleep: others publish meanwhile
            }
            worker.close(at(1)).await;
            store.close().await.unwrap();
            seen
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut all = Vec::new();
    for worker in workers {
        let seen = worker.await.unwrap();
        for key in 0..KEYS {
            let prefix = format!("{key}-");
            let of_key: Vec<_> = seen.iter().filter(|id| id.starts_with(&prefix)).collect();
            assert!(of_key.is_sorted(), "a worker got a key out of order: {of_key:?}");
        }
        all.extend(seen);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len() as u64, KEYS * EVENTS);
    first.close().await.unwrap();
    let _ = LEASE;
}
