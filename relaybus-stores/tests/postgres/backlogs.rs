//! Backlogs that nobody can pick now do not slow the claims of others: counted in turns, not timed.

use relaybus::EventStore;
use relaybus::store::{Settlement, Verdict};
use relaybus_stores::PostgresStore;
use sqlx::AssertSqlSafe;

use crate::kit::{Schema, Worker, at, connect, handler, ids, named};

/// Deliveries in the way.
const CROWD: usize = 100_000;

async fn store(schema: &Schema) -> PostgresStore {
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    store
}

/// Copies the one delivery of event `of` so often, each with a later number and sequence.
async fn multiply(schema: &Schema, of: &str) {
    let text = format!(
        "INSERT INTO {0}.relaybus_deliveries (id, available_at, sequence, key, lane, handler, event_id)
         SELECT nextval('{0}.relaybus_numbers'), d.available_at, CASE WHEN d.key IS NULL THEN NULL ELSE currval('{0}.relaybus_numbers') END,
           d.key, d.lane, d.handler, d.event_id
         FROM {0}.relaybus_deliveries d, generate_series(1, {CROWD}) WHERE d.event_id = '\\x00'::bytea || '{of}'::bytea",
        schema.name
    );
    sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut connect().await).await.unwrap();
}

/// Turns until `id` is handed out.
async fn turns_until(worker: &mut Worker, id: &str, limit: usize, most: usize) -> usize {
    for turns in 1..=most {
        let turn = worker.turn(&[], limit, 1, at(5)).await.unwrap();
        if turn.runs.iter().any(|run| ids(&run.deliveries).contains(&id)) {
            return turns;
        }
        assert!(turn.more || turns < 3, "the store gave up after {turns} turns");
    }
    panic!("`{id}` was not handed out in {most} turns");
}

#[tokio::test]
async fn a_handler_that_nobody_has_is_never_read() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut crowd = named(&["crowd"], None, at(0));
    crowd.events[0].handlers = [handler("unknown")].into();
    store.append_alone(&crowd).await.unwrap();
    multiply(&schema, "crowd").await;
    store.append_alone(&named(&["x"], None, at(1))).await.unwrap();
    let mut worker = Worker::new(&store, &["h"], at(2)).await;
    assert_eq!(turns_until(&mut worker, "x", 10, 1).await, 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_handler_at_its_limit_is_never_read() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut crowd = named(&["crowd"], None, at(0));
    crowd.events[0].handlers = [handler("full")].into();
    store.append_alone(&crowd).await.unwrap();
    multiply(&schema, "crowd").await;
    store.append_alone(&named(&["x"], None, at(1))).await.unwrap();
    let mut worker = Worker::new(&store, &["full", "h"], at(2)).await;
    worker.slots[0].limit = 0;
    assert_eq!(turns_until(&mut worker, "x", 10, 1).await, 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn followers_of_a_blocked_key_are_passed() {
    let schema = Schema::new();
    let store = store(&schema).await;
    store.append_alone(&named(&["head"], Some("blocked"), at(0))).await.unwrap();
    let mut worker = Worker::new(&store, &["h"], at(1)).await;
    let head = worker.claim(1, at(1)).await;
    multiply(&schema, "head").await;
    let verdict = Verdict::Reschedule { due_at: at(9_000), error: "{}".to_owned() };
    worker.settle(Settlement::new(head[0].lease.clone(), verdict), at(1)).await;
    // The copies keep the head's due time, so all of them are due before these.
    store.append_alone(&named(&["unkeyed"], None, at(2))).await.unwrap();
    assert!(turns_until(&mut worker, "unkeyed", 10, 2).await <= 2, "unkeyed deliveries have an index of their own");
    store.append_alone(&named(&["keyed"], Some("other"), at(3))).await.unwrap();
    let turns = turns_until(&mut worker, "keyed", 10, 40).await;
    assert!(turns <= 20, "another key's head took {turns} turns behind {CROWD} followers");
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_is_due_next_week_is_never_read() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut crowd = named(&["crowd"], None, at(0));
    crowd.events[0].due_at = at(700_000);
    store.append_alone(&crowd).await.unwrap();
    multiply(&schema, "crowd").await;
    store.append_alone(&named(&["x"], None, at(1))).await.unwrap();
    let mut worker = Worker::new(&store, &["h"], at(2)).await;
    assert_eq!(turns_until(&mut worker, "x", 10, 1).await, 1);
    store.close().await.unwrap();
}
