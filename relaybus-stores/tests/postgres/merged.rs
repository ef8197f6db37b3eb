//! Publishes without a transaction that share a statement: each answers for itself, and everything is stored once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use relaybus::store::AppendBatch;
use relaybus::{EventStore, Result};
use relaybus_stores::PostgresStore;
use relaybus_stores::postgres::WakeUpMode;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use crate::kit::{Schema, at, connect, fresh, options};
use crate::proxy::Proxy;
use crate::wakeups::{settle, signal, woken};

/// Connections for publishing.
const CONNECTIONS: u64 = 2;

/// A store behind a proxy, whose connections for publishing are held up in the middle of a publish.
struct Held {
    schema: Schema,
    store: PostgresStore,
    proxy: Proxy,
    holding: Vec<tokio::task::JoinHandle<Result<()>>>,
    watch: PgConnection,
}

pub fn one(number: u64, key: Option<&str>) -> AppendBatch {
    fresh(number, 1, |_| key.map(str::to_owned), &["h"], at(0))
}

pub async fn publish(store: &PostgresStore, batch: AppendBatch) -> Result<()> {
    store.append_alone(&batch).await.map(drop)
}

impl Held {
    async fn new() -> Self {
        let schema = Schema::new();
        let proxy = Proxy::start(options()).await;
        let store = PostgresStore::with_options(proxy.options()).schema(&schema.name).wake_up(WakeUpMode::Poll);
        let store = store.build().unwrap();
        store.setup().await.unwrap();
        let watch = connect().await;
        let mut held = Self { schema, store, proxy, holding: Vec::new(), watch };
        held.warm_up(&["h"]).await;
        held.run("DELETE FROM {}.relaybus_events; DELETE FROM {}.relaybus_deliveries").await;
        held
    }

    /// Opens the connections and registers the handlers, until a publish is one statement: numbers are read again when something
    /// was opened.
    async fn warm_up(&self, handlers: &[&str]) {
        let batch = |n: u64| fresh(10_000 * (1 + handlers.len() as u64) + n, 1, |_| None, handlers, at(0));
        for answer in join_all((0..4).map(|n| publish(&self.store, batch(n)))).await {
            answer.unwrap();
        }
        for n in 4.. {
            assert!(n < 50, "a publish takes more than a statement");
            let before = self.proxy.counts();
            publish(&self.store, batch(n)).await.unwrap();
            if self.proxy.counts().since(&before).executed == 1 {
                break;
            }
        }
    }

    /// Holds up every connection, each by an event from `2_000` on.
    async fn hold(&mut self) {
        for n in 0..CONNECTIONS {
            self.proxy.hold_question(1);
            let (store, batch) = (self.store.clone(), one(2_000 + n, None));
            self.holding.push(tokio::spawn(async move { publish(&store, batch).await }));
            self.until_held().await;
        }
    }

    async fn until_held(&self) {
        while !self.proxy.holds() {
            tokio::task::yield_now().await;
        }
    }

    /// Lets one of the connections go on: whoever waited first sends for all. The other stays held up to the end.
    fn go_on(&self) {
        self.proxy.go_on();
    }

    async fn run(&mut self, text: &str) {
        let text = AssertSqlSafe(text.replace("{}", &self.schema.name));
        sqlx::raw_sql(text).execute(&mut self.watch).await.unwrap();
    }

    /// The numbers of the events that are stored; each is there once, and so is its delivery.
    async fn stored(&mut self) -> HashSet<u64> {
        let text = "SELECT encode(e.id, 'hex') AS id, (SELECT count(*) FROM {}.relaybus_deliveries d WHERE d.event_id = e.id) AS deliveries FROM {}.relaybus_events e";
        let text = AssertSqlSafe(text.replace("{}", &self.schema.name));
        let rows = sqlx::query(text).fetch_all(&mut self.watch).await.unwrap();
        let number = |id: String| u64::from_str_radix(&id[20..], 16).unwrap();
        assert!(rows.iter().all(|row| row.get::<i64, _>("deliveries") == 1));
        rows.iter().map(|row| number(row.get("id"))).filter(|number| *number < 2_000).collect()
    }

    /// Inserting an event of this number takes half a second.
    async fn slow(&mut self, number: u64) {
        let id = format!("\\x01890000000070008000{number:012x}");
        self.run(&format!(
            "CREATE FUNCTION {{}}.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END $$;
             CREATE TRIGGER slow BEFORE INSERT ON {{}}.relaybus_events FOR EACH ROW WHEN (NEW.id = '{id}') EXECUTE FUNCTION {{}}.slow()"
        ))
        .await;
    }

    /// The process of the server that inserts a slow event.
    async fn sleeping(&mut self) -> i32 {
        let text = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE $1";
        let like = format!("%{}%", self.schema.name);
        loop {
            let row: Option<i32> = sqlx::query_scalar(text).bind(&like).fetch_optional(&mut self.watch).await.unwrap();
            if let Some(process) = row {
                return process;
            }
        }
    }

    async fn end(mut self) {
        self.proxy.go_on();
        for holding in std::mem::take(&mut self.holding) {
            holding.await.unwrap().unwrap();
        }
        self.store.close().await.unwrap();
    }
}

#[tokio::test]
async fn what_waits_is_sent_in_one_statement() {
    let mut held = Held::new().await;
    held.hold().await;
    let before = held.proxy.counts();
    let keys = [None, Some("a"), None, Some("b"), Some("a")];
    let publishes = (0..8).map(|n| publish(&held.store, one(n, keys[n as usize % keys.len()])));
    let (answers, ()) = tokio::join!(join_all(publishes), async { held.go_on() });
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let sent = held.proxy.counts().since(&before);
    assert_eq!((sent.executed, sent.answered - sent.parsed), (1, 1), "{sent:?}");
    assert_eq!(held.stored().await, (0..8).collect());
    // Those of one key in the order in which they came, and each at its own time.
    let text = "SELECT sequence FROM {}.relaybus_events WHERE key = 'a' ORDER BY id";
    let text = AssertSqlSafe(text.replace("{}", &held.schema.name));
    let sequences: Vec<i64> = sqlx::query_scalar(text).fetch_all(&mut held.watch).await.unwrap();
    assert!(sequences.len() == 3 && sequences.is_sorted(), "{sequences:?}");
    held.end().await;
}

/// Events of different times, types, handlers, headers and numbers of handlers share a statement, and keep what is theirs.
#[tokio::test]
async fn events_of_any_kind_share_a_statement() {
    let mut held = Held::new().await;
    let handlers: [&[&str]; 5] = [&["h"], &[], &["h", "i", "j"], &["i"], &["h", "h"]];
    held.warm_up(&["h", "i", "j"]).await;
    held.hold().await;
    let mut batches = Vec::new();
    for (n, handlers) in (0_u64..).zip(handlers) {
        let mut batch = fresh(10 * n, 1 + n % 2, |n| (n % 20 == 0).then(|| format!("key-{n}")), handlers, at(n as i64));
        for event in &mut batch.events {
            event.envelope.causation_id = (n == 2).then(|| Arc::from("its cause"));
            event.envelope.correlation_id = Arc::from(if n == 3 { "another" } else { event.envelope.id.as_str() });
            event.due_at = at(if n == 4 { 100 } else { n as i64 });
            if n == 1 {
                event.envelope.occurred_at = at(-5);
                event.envelope.headers = relaybus::Headers::default();
            }
        }
        batches.push(batch);
    }
    let before = held.proxy.counts();
    let publishes = batches.iter().map(|batch| held.store.append_alone(batch));
    let (answers, ()) = tokio::join!(join_all(publishes), async { held.go_on() });
    assert_eq!(held.proxy.counts().since(&before).executed, 1);
    let deliveries = |answer: &Result<relaybus::store::Appended>| {
        answer.as_ref().unwrap().outcomes.iter().map(|one| one.deliveries()).collect::<Vec<_>>()
    };
    let counts: Vec<Vec<usize>> = answers.iter().map(deliveries).collect();
    assert_eq!(counts, [vec![1], vec![0, 0], vec![3], vec![1, 1], vec![1]]);
    // What a handler gets is what was published.
    let mut worker = crate::kit::Worker::new(&held.store, &["h", "i", "j"], at(200)).await;
    let claimed = worker.claim(100, at(200)).await;
    let sent: HashMap<&str, _> =
        batches.iter().flat_map(|batch| &batch.events).map(|e| (e.envelope.id.as_str(), e)).collect();
    let ours: Vec<_> = claimed.iter().filter(|claimed| sent.contains_key(claimed.event.id.as_str())).collect();
    assert_eq!(ours.len(), 7);
    for claimed in ours {
        let event = sent[claimed.event.id.as_str()];
        assert_eq!(format!("{:?}", claimed.event), format!("{:?}", event.envelope));
        assert_eq!(claimed.lease.due_at, event.due_at);
    }
    worker.close(at(200)).await;
    held.end().await;
}

#[tokio::test]
async fn an_event_that_the_server_refuses_fails_alone() {
    let mut held = Held::new().await;
    held.run("ALTER TABLE {}.relaybus_events ADD CHECK (id <> '\\x01890000000070008000000000000003')").await;
    held.hold().await;
    let publishes = (0..8).map(|n| publish(&held.store, one(n, None)));
    let (answers, ()) = tokio::join!(join_all(publishes), async { held.go_on() });
    let failed: Vec<usize> = (0..8).filter(|n| answers[*n].is_err()).collect();
    assert_eq!(failed, [3], "{answers:?}");
    assert_eq!(held.stored().await, (0..8).filter(|n| *n != 3).collect());
    held.end().await;
}

/// Whoever is dropped while it waits is not stored, and holds up nobody.
#[tokio::test]
async fn who_is_dropped_while_it_waits_is_not_stored() {
    let mut held = Held::new().await;
    held.hold().await;
    let waiting: Vec<_> = (0..3)
        .map(|n| {
            let store = held.store.clone();
            tokio::spawn(async move { publish(&store, one(n, None)).await })
        })
        .collect();
    tokio::task::yield_now().await;
    for dropped in [0, 2] {
        waiting[dropped].abort();
    }
    tokio::task::yield_now().await;
    held.go_on();
    let answers = join_all(waiting).await;
    assert!(matches!(&answers[..], [Err(_), Ok(Ok(())), Err(_)]), "{answers:?}");
    assert_eq!(held.stored().await, HashSet::from([1]));
    held.end().await;
}

/// Who sends for others is dropped in the middle of it: the others are stored once, whether the statement comes to its end late
/// or not at all, and whether it has their rows already or not.
#[tokio::test]
async fn who_sends_for_others_may_be_dropped() {
    for slow in [0, 3] {
        let mut held = Held::new().await;
        held.slow(slow).await;
        held.hold().await;
        let (store, batch) = (held.store.clone(), one(0, None));
        let leader = tokio::spawn(async move { publish(&store, batch).await });
        tokio::task::yield_now().await;
        let store = held.store.clone();
        let others = tokio::spawn(async move { join_all((1..4).map(|n| publish(&store, one(n, None)))).await });
        tokio::task::yield_now().await;
        held.go_on();
        held.sleeping().await;
        leader.abort();
        assert!(leader.await.unwrap_err().is_cancelled());
        for answer in others.await.unwrap() {
            answer.unwrap();
        }
        // sleep: the statement that was left alone ends.
        tokio::time::sleep(Duration::from_millis(700)).await;
        let stored = held.stored().await;
        assert!((1..4).all(|n| stored.contains(&n)), "{stored:?}");
        held.end().await;
    }
}

/// The connection of a statement of many ends: all of them are stored once.
#[tokio::test]
async fn a_connection_that_ends_under_many_loses_none() {
    for slow in [0, 3] {
        let mut held = Held::new().await;
        held.slow(slow).await;
        held.hold().await;
        let store = held.store.clone();
        let publishes = tokio::spawn(async move { join_all((0..4).map(|n| publish(&store, one(n, None)))).await });
        tokio::task::yield_now().await;
        held.go_on();
        let process = held.sleeping().await;
        held.run(&format!("SELECT pg_terminate_backend({process})")).await;
        for answer in publishes.await.unwrap() {
            answer.unwrap();
        }
        assert_eq!(held.stored().await, (0..4).collect());
        held.end().await;
    }
}

/// An answer that is lost after the commit: whoever shared the statement is told that it is stored, once.
#[tokio::test]
async fn a_lost_answer_to_many_is_no_failure() {
    let mut held = Held::new().await;
    held.hold().await;
    let publishes = (0..4).map(|n| publish(&held.store, one(n, None)));
    let (answers, ()) = tokio::join!(join_all(publishes), async {
        held.proxy.lose_answer(1);
        held.go_on();
    });
    assert!(held.proxy.has_lost());
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(held.stored().await, (0..4).collect());
    // Many of one call, and one alone.
    for (number, count) in [(10, 1), (20, 5)] {
        held.proxy.lose_answer(1);
        publish(&held.store, fresh(number, count, |_| None, &["h"], at(0))).await.unwrap();
        assert!(held.proxy.has_lost());
    }
    assert_eq!(held.stored().await.len(), 10);
    held.end().await;
}

/// The event is there already when it is sent again: whoever waits for it has to be told all the same.
#[tokio::test]
async fn what_a_lost_answer_stored_wakes_others() {
    let schema = Schema::new();
    let proxy = Proxy::start(options()).await;
    let store = PostgresStore::with_options(proxy.options()).schema(&schema.name).build().unwrap();
    let worker = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    let (signal, wake) = signal();
    let guard = worker.watch(wake).await.unwrap();
    for number in 0..3 {
        publish(&store, one(number, None)).await.unwrap();
        woken(&signal).await;
        settle(&signal).await;
    }
    proxy.lose_answer(1);
    publish(&store, one(10, None)).await.unwrap();
    assert!(proxy.has_lost());
    woken(&signal).await;
    drop(guard);
    store.close().await.unwrap();
    worker.close().await.unwrap();
}
