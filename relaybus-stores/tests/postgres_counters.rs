//! Counters of the PostgreSQL store against budgets: statements, round trips, statements parsed, rows and WAL bytes.
//!
//! Exact, not timed; the budgets are in `postgres/budgets.txt` and may only go down. A program of its own, because the WAL
//! is one for the whole server: nothing else may write meanwhile. What the server does by itself (a checkpoint, cleaning
//! other tables, a snapshot that keeps a page from being pruned) and a pool's test of a connection after a pause can only add to a
//! counter, so the least of a few rounds counts.
#![cfg(feature = "postgres")]
#![allow(
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests of real servers, connections and tasks; their names say what they check"
)]

#[path = "postgres/kit.rs"]
mod kit;
#[path = "postgres/proxy.rs"]
mod proxy;

use std::collections::BTreeMap;

use relaybus::EventStore;
use relaybus::store::{AppendBatch, Completed};
use relaybus_stores::PostgresStore;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use kit::{Schema, Worker, at, connect, fresh, options};
use proxy::Proxy;

/// Rounds that are made while a counter is above its budget.
const ROUNDS: usize = 4;

/// A counter's budget; missing it is a failure, and so is a counter without one.
struct Budgets {
    most: BTreeMap<String, f64>,
    /// The least so far.
    counted: BTreeMap<String, f64>,
}

impl Budgets {
    fn read() -> Self {
        let lines = include_str!("postgres/budgets.txt").lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let most = lines
            .map(|line| line.split_once('=').unwrap())
            .map(|(name, most)| (name.trim().to_owned(), most.trim().parse().unwrap()))
            .collect();
        Self { most, counted: BTreeMap::new() }
    }

    fn check(&mut self, name: &str, value: f64) {
        assert!(self.most.contains_key(name), "`{name}` has no budget");
        let least = self.counted.entry(name.to_owned()).or_insert(value);
        *least = least.min(value);
    }

    /// Counters above their budgets.
    fn missed(&self) -> Vec<&str> {
        let above = self.counted.iter().filter(|(name, value)| **value > self.most[*name]);
        above.map(|(name, _)| name.as_str()).collect()
    }

    fn print(&self) {
        for (name, value) in &self.counted {
            println!("{name:<40} {value:>10.3}  of {}", self.most[name]);
        }
    }
}

/// How far the server's WAL is, in bytes.
async fn wal(connection: &mut PgConnection) -> f64 {
    let row = sqlx::query("SELECT (pg_current_wal_insert_lsn() - '0/0')::float8").fetch_one(connection).await.unwrap();
    row.get(0)
}

async fn pages_are_logged(connection: &mut PgConnection) -> bool {
    sqlx::query("SHOW full_page_writes").fetch_one(connection).await.unwrap().get::<String, _>(0) == "on"
}

/// Publishes `calls` batches and returns WAL bytes an event, and what was sent for each call.
async fn publish(
    store: &PostgresStore,
    proxy: &Proxy,
    watch: &mut PgConnection,
    calls: u64,
    batch: impl Fn(u64) -> AppendBatch,
) -> (f64, f64, f64, f64) {
    // Connections prepare their statements.
    for n in 0..8 {
        store.append_alone(&batch(1_000_000 + n)).await.unwrap();
    }
    let mut least = f64::INFINITY;
    let mut events = 0;
    let before = proxy.counts();
    for round in 0..3 {
        let start = wal(watch).await;
        events = 0;
        for n in 0..calls {
            let batch = batch(round * calls + n);
            events += batch.events.len();
            store.append_alone(&batch).await.unwrap();
        }
        least = least.min(wal(watch).await - start);
    }
    let sent = proxy.counts().since(&before);
    let per_call = |count: u64| count as f64 / (3 * calls) as f64;
    (least / events as f64, per_call(sent.executed), per_call(sent.parsed), per_call(sent.answered))
}

#[tokio::test]
async fn counters_stay_within_their_budgets() {
    let mut budgets = Budgets::read();
    let mut counts_wal = false;
    for _ in 0..ROUNDS {
        counts_wal = round(&mut budgets).await;
        if budgets.missed().is_empty() {
            break;
        }
    }
    budgets.print();
    assert!(budgets.missed().is_empty(), "above their budgets: {:?}", budgets.missed());
    if counts_wal {
        let uncounted: Vec<&String> = budgets.most.keys().filter(|name| !budgets.counted.contains_key(*name)).collect();
        assert!(uncounted.is_empty(), "budgets without a counter: {uncounted:?}");
    }
}

/// Counts everything once. Whether WAL was counted.
async fn round(budgets: &mut Budgets) -> bool {
    let schema = Schema::new();
    let proxy = Proxy::start(options()).await;
    let store = PostgresStore::with_options(proxy.options()).schema(&schema.name).max_connections(1);
    let store = store.wake_up(relaybus_stores::postgres::WakeUpMode::Poll).build().unwrap();
    store.setup().await.unwrap();
    let mut watch = connect().await;
    let counts_wal = !pages_are_logged(&mut watch).await;
    if !counts_wal {
        println!("the server logs whole pages: WAL is not counted here");
    }
    publishing(&store, &proxy, &mut watch, budgets, counts_wal).await;
    for (name, limit) in [("200", 200), ("10", 10)] {
        dispatching(&store, &proxy, &mut watch, budgets, counts_wal, name, limit).await;
    }
    store.close().await.unwrap();
    rows(&mut watch, &schema.name, budgets).await;
    counts_wal
}

/// Makes the batch of a number.
type Batches = Box<dyn Fn(u64) -> AppendBatch>;

async fn publishing(
    store: &PostgresStore,
    proxy: &Proxy,
    watch: &mut PgConnection,
    budgets: &mut Budgets,
    counts_wal: bool,
) {
    const SPACE: u64 = 10_000_000;
    let kinds: [(&str, u64, Batches); 5] = [
        ("publish one", 200, Box::new(|n| fresh(n, 1, |_| None, &["h"], at(0)))),
        ("publish one of any id", 200, Box::new(|n| kit::any_id(SPACE + n, at(0)))),
        ("publish batch of 100", 20, Box::new(|n| fresh(2 * SPACE + n * 100, 100, |_| None, &["h"], at(0)))),
        (
            "publish keyed",
            200,
            Box::new(|n| fresh(4 * SPACE + n, 1, |n| Some(format!("order-{}", n % 50)), &["h"], at(0))),
        ),
        // By number `h`, which has the most, is the first: where pages of the indexes split is part of what is counted.
        ("publish for five", 200, Box::new(|n| fresh(5 * SPACE + n, 1, |_| None, &["h", "k", "j", "u", "t"], at(0)))),
    ];
    for (name, calls, batch) in kinds {
        let (bytes, executed, parsed, answered) = publish(store, proxy, watch, calls, batch).await;
        budgets.check(&format!("{name}: statements"), executed);
        budgets.check(&format!("{name}: parsed"), parsed);
        budgets.check(&format!("{name}: round trips"), answered);
        if counts_wal {
            budgets.check(&format!("{name}: WAL bytes an event"), bytes);
        }
    }
}

async fn dispatching(
    store: &PostgresStore,
    proxy: &Proxy,
    watch: &mut PgConnection,
    budgets: &mut Budgets,
    counts_wal: bool,
    name: &str,
    limit: usize,
) {
    let mut worker = Worker::new(store, &["h"], at(1)).await;
    let mut done: Vec<Completed> = Vec::new();
    // The first turns prepare and sweep, and meet what is keyed.
    for _ in 0..8 {
        let turn = worker.turn(&done, limit, 20, at(1)).await.unwrap();
        done = kit::completions(&turn.runs);
    }
    let (mut turns, mut deliveries) = (0_u64, 0_usize);
    let before = proxy.counts();
    let start = wal(watch).await;
    let most = if limit > 100 { 1_200 } else { 300 };
    while deliveries < most {
        let turn = worker.turn(&done, limit, 20, at(1)).await.unwrap();
        deliveries += done.len();
        turns += 1;
        done = kit::completions(&turn.runs);
        assert_eq!(done.len(), limit, "the queue is deep");
    }
    let bytes = wal(watch).await - start;
    let sent = proxy.counts().since(&before);
    budgets.check(&format!("dispatch at {name}: statements a turn"), sent.executed as f64 / turns as f64);
    budgets.check(&format!("dispatch at {name}: parsed"), sent.parsed as f64);
    if counts_wal {
        budgets.check(&format!("dispatch at {name}: WAL bytes a delivery"), bytes / deliveries as f64);
    }
    worker.turn(&done, 0, 1, at(1)).await.unwrap();
    worker.close(at(1)).await;
}

/// Rows updated and deleted, as the server counted them.
async fn rows(watch: &mut PgConnection, schema: &str, budgets: &mut Budgets) {
    let text = format!(
        "SELECT relname::text, n_tup_upd, n_tup_hot_upd, n_tup_del, n_tup_ins FROM pg_stat_user_tables WHERE schemaname = '{schema}'"
    );
    let mut counted: BTreeMap<String, [i64; 4]> = BTreeMap::new();
    // The server counts with a delay of up to a second after a connection's last statement.
    for _ in 0..100 {
        let all = sqlx::query(AssertSqlSafe(text.clone())).fetch_all(&mut *watch).await.unwrap();
        counted = all.iter().map(|row| (row.get(0), [row.get(1), row.get(2), row.get(3), row.get(4)])).collect();
        if counted.get("relaybus_deliveries").is_some_and(|counts| counts[2] >= 1_500)
            && counted["relaybus_sessions"][2] == 2
        {
            break;
        }
        // sleep: as above.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let of = |table: &str| counted.get(&format!("relaybus_{table}")).copied().unwrap_or_default();
    let (sessions, handlers) = (of("sessions"), of("handlers"));
    budgets.check("deliveries updated", of("deliveries")[0] as f64);
    budgets.check("completions recorded inside the slack", of("event_completions")[3] as f64);
    budgets.check("session updates that were not HOT", (sessions[0] - sessions[1]) as f64);
    budgets.check("handler updates that were not HOT", (handlers[0] - handlers[1]) as f64);
    budgets.check("handler updates", handlers[0] as f64);
    assert!(of("deliveries")[2] >= 1_500, "the server counted {counted:?}");
}
