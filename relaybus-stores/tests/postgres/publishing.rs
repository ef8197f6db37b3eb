//! Publishing without a transaction: the order of keys, what others hold, and the connections.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use relaybus::EventStore;
use relaybus::store::{AppendBatch, HandleOf as _, StoreTransaction as _, TransactionOptions};
use relaybus_stores::PostgresStore;
use relaybus_stores::postgres::WakeUpMode;
use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Row as _};

use crate::kit::{Schema, any_id, at, connect, event, fresh, options};
use crate::merged::{one, publish};

/// A snapshot never shows an event of a key without those of lower sequence, however publishes share statements, and while
/// transactions hold keys for longer than a statement waits for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_order_of_a_key_is_that_of_commits_when_many_publish() {
    const KEYS: u64 = 10;
    const EACH: u64 = 60;
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let watching = tokio::spawn(watch_order(schema.name.clone(), Arc::clone(&ended)));
    let publisher = |from: u64| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..EACH {
                let number = from + n;
                publish(&store, one(number, Some(&format!("key-{}", (number * 7) % KEYS)))).await.unwrap();
            }
        })
    };
    let publishers: Vec<_> = (0..8).map(|p| publisher(p * 1_000)).collect();
    let holder = store.clone();
    let holding = tokio::spawn(async move {
        for n in 0..5 {
            let mut tx = holder.begin(&TransactionOptions::default()).await.unwrap();
            holder.append(tx.handle(), &one(100_000 + n, Some(&format!("key-{n}")))).await.unwrap();
            // sleep: longer than a statement of many waits.
            tokio::time::sleep(Duration::from_millis(80)).await;
            tx.commit().await.unwrap();
        }
    });
    for task in publishers {
        task.await.unwrap();
    }
    holding.await.unwrap();
    ended.store(true, Ordering::Relaxed);
    let (count, looks) = watching.await.unwrap();
    assert_eq!(count as u64, 8 * EACH + 5, "seen in {looks} snapshots");
    assert!(looks > 20, "{looks} snapshots");
    store.close().await.unwrap();
}

/// Looks until `ended`, and once more. Events and looks.
async fn watch_order(schema: String, ended: Arc<AtomicBool>) -> (usize, usize) {
    let mut connection = connect().await;
    let text = format!("SELECT key, sequence FROM {schema}.relaybus_events ORDER BY sequence");
    let (mut seen, mut highest, mut looks) = (HashSet::new(), HashMap::<String, i64>::new(), 0);
    loop {
        let last = ended.load(Ordering::Relaxed);
        let rows = sqlx::query(AssertSqlSafe(text.clone())).fetch_all(&mut connection).await.unwrap();
        let before = highest.clone();
        for row in rows {
            let (key, sequence): (String, i64) = (row.get(0), row.get(1));
            if seen.insert(sequence) {
                let before = before.get(&key).copied().unwrap_or(0);
                assert!(sequence > before, "{sequence} of `{key}` was committed behind {before}");
                highest.insert(key, sequence);
            }
        }
        looks += 1;
        if last {
            return (seen.len(), looks);
        }
    }
}

/// A transaction that holds a key holds up the events of that key only, and is itself no victim of theirs.
#[tokio::test]
async fn a_key_that_is_held_holds_up_its_own_events_only() {
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    let mut tx = store.begin(&TransactionOptions::default()).await.unwrap();
    store.append(tx.handle(), &one(0, Some("held"))).await.unwrap();
    let waiting: Vec<_> = (1..4)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { publish(&store, one(n, Some("held"))).await })
        })
        .collect();
    // From inside the transaction too: it waits for them, and they do not wait for it.
    join_all((10..30).map(|n| async move { n }).map(|n| async {
        let n = n.await;
        publish(&store, one(n, (n % 2 == 0).then_some("free"))).await.unwrap();
    }))
    .await;
    assert!(waiting.iter().all(|task| !task.is_finished()));
    store.append(tx.handle(), &one(40, Some("free"))).await.unwrap();
    tx.commit().await.unwrap();
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    store.close().await.unwrap();
}

/// Publishing needs no connection of the application's pool.
#[tokio::test]
async fn an_exhausted_pool_stops_no_publish() {
    let schema = Schema::new();
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_millis(200));
    let pool = pool.connect_with(options()).await.unwrap();
    let store = PostgresStore::with_pool(pool.clone()).schema(&schema.name).build().unwrap();
    store.setup().await.unwrap();
    let taken = pool.acquire().await.unwrap();
    publish(&store, one(1, None)).await.unwrap();
    publish(&store, one(2, Some("k"))).await.unwrap();
    publish(&store, any_id(3, at(0))).await.unwrap();
    publish(&store, fresh(10, 50, |n| (n % 2 == 0).then(|| "k".to_owned()), &["h", "i"], at(0))).await.unwrap();
    // What may have to be extended needs a transaction.
    let again = AppendBatch::new(vec![event("01890000-0000-7000-8000-000000000003", None, &["h", "i"], at(0))], at(0));
    assert!(store.append_alone(&again).await.is_err());
    drop(taken);
    assert_eq!(store.append_alone(&again).await.unwrap().outcomes[0].deliveries(), 1);
    store.close().await.unwrap();
}

/// Connections that nobody uses are closed, and those that are closed with the store.
#[tokio::test]
async fn connections_for_publishing_end() {
    let schema = Schema::new();
    let store = schema.builder().wake_up(WakeUpMode::Poll).build().unwrap();
    store.setup().await.unwrap();
    let mut watch = connect().await;
    for closes in [false, true] {
        join_all((0..4).map(|n| publish(&store, one(10 * u64::from(closes) + n, None)))).await;
        assert_eq!(connections(&mut watch, &schema.name, 2).await, 2);
        if closes {
            store.close().await.unwrap();
        } else {
            tokio::time::pause();
            for _ in 0..3 {
                tokio::time::advance(Duration::from_secs(31)).await;
                tokio::task::yield_now().await;
            }
            tokio::time::resume();
        }
        assert_eq!(connections(&mut watch, &schema.name, 0).await, 0);
    }
}

/// Connections that published last, when they are as many as `wanted`, or after a while.
async fn connections(watch: &mut PgConnection, schema: &str, wanted: i64) -> i64 {
    let text = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1";
    let like = format!("%INSERT INTO \"{schema}\".\"relaybus_events\"%");
    let mut count = 0;
    for _ in 0..200 {
        count = sqlx::query_scalar(text).bind(&like).fetch_one(&mut *watch).await.unwrap();
        if count == wanted {
            break;
        }
        // sleep: a process of the server ends by itself.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    count
}
