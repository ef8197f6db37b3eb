//! A claim costs the same whatever lies in the tables: pages that are read, as the server counts them, beside 1,000,000 deliveries that
//! nobody can pick now, behind a deep backlog, and while an old transaction keeps the dead rows. What is read of dead rows then is
//! what was completed in the last half minute; sweeps, once a second, read all of them.

use relaybus::store::Completed;
use relaybus::{EventStore, Timestamp};
use relaybus_stores::PostgresStore;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use crate::kit::{Schema, Worker, at, completions, connect, fresh};

/// Deliveries that are in the way.
const CROWD: u64 = 1_000_000;
/// Deliveries that are claimed and completed, ten at a time.
const WORK: usize = 400;
const LIMIT: usize = 10;
/// What a claim may cost beside the crowd, as a multiple of what it costs without.
const MOST: f64 = 1.5;

async fn run(connection: &mut PgConnection, sql: String) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(connection).await;
    done.unwrap_or_else(|error| panic!("{error}: {sql}"));
}

/// Pages of the store's tables and indexes that were read so far. A connection reports what it read when it ends.
async fn pages(connection: &mut PgConnection, schema: &str) -> i64 {
    let text = format!(
        "SELECT sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0))::bigint \
         FROM pg_statio_user_tables WHERE schemaname = '{schema}'"
    );
    let mut last = -1;
    loop {
        let now: i64 = sqlx::query_scalar(AssertSqlSafe(text.clone())).fetch_one(&mut *connection).await.unwrap();
        if now == last {
            return now;
        }
        last = now;
        // sleep: the server tells nobody when a connection has ended.
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    }
}

/// A handler of the crowd, in the way of `h`.
#[derive(Clone, Copy)]
enum Crowd {
    None,
    /// Of this handler, due at this second; all of one key or of none.
    Of(&'static str, i64, Option<&'static str>),
}

struct Place {
    schema: Schema,
    watch: PgConnection,
}

impl Place {
    async fn new(crowd: Crowd, keys: bool) -> Self {
        let schema = Schema::new();
        let mut watch = connect().await;
        let store = schema.builder().build().unwrap();
        store.setup().await.unwrap();
        // The server's own cleaning reads pages too.
        run(
            &mut watch,
            format!(
                "ALTER TABLE {0}.relaybus_deliveries SET (autovacuum_enabled = off); ALTER TABLE {0}.relaybus_events SET (autovacuum_enabled = off)",
                schema.name
            ),
        )
        .await;
        if let Crowd::Of(handler, due, key) = crowd {
            let mut batch = fresh(9_000_000, 1, |_| key.map(str::to_owned), &[handler], at(0));
            batch.events[0].due_at = at(due);
            store.append_alone(&batch).await.unwrap();
            let copy = format!(
                "INSERT INTO {0}.relaybus_deliveries (id, available_at, sequence, key, lane, handler, event_id)
                 SELECT nextval('{0}.relaybus_numbers'), d.available_at, CASE WHEN d.key IS NULL THEN NULL ELSE currval('{0}.relaybus_numbers') END,
                   d.key, d.lane, d.handler, d.event_id FROM {0}.relaybus_deliveries d, generate_series(2, {CROWD})",
                schema.name
            );
            run(&mut watch, copy).await;
            if key.is_some() {
                // Its head waits: the others are due and cannot be picked.
                run(
                    &mut watch,
                    format!(
                        "UPDATE {0}.relaybus_deliveries SET available_at = available_at + interval '1 year' WHERE id = (SELECT min(id) FROM {0}.relaybus_deliveries)",
                        schema.name
                    ),
                )
                .await;
            }
        }
        publish(&store, 0, keys, at(1)).await;
        store.close().await.unwrap();
        for table in ["deliveries", "events"] {
            run(&mut watch, format!("VACUUM ANALYZE {}.relaybus_{table}", schema.name)).await;
        }
        Self { schema, watch }
    }

    /// Pages a delivery, of a worker that has handler `h` and `others` without a free slot.
    async fn cost(&mut self, others: &[&str], now: Timestamp) -> f64 {
        let store = self.schema.builder().build().unwrap();
        let handlers: Vec<&str> = ["h"].into_iter().chain(others.iter().copied()).collect();
        let mut worker = Worker::new(&store, &handlers, now).await;
        for slots in worker.slots.iter_mut().filter(|slots| slots.handler.as_str() != "h") {
            slots.limit = 0;
        }
        // A new session looks from the beginning, and comes to where it goes on from.
        let done = self.work(&mut worker, Vec::new(), WORK / 4, now).await;
        let before = self.told(&mut worker, now).await;
        let done = self.work(&mut worker, done, WORK, now).await;
        let after = self.told(&mut worker, now).await;
        worker.turn(&done, 0, 1, now).await.unwrap();
        worker.close(now).await;
        store.close().await.unwrap();
        (after - before) as f64 / WORK as f64
    }

    /// Pages so far, those of the worker's connection too: it tells at the end of a statement a second after it told last.
    async fn told(&mut self, worker: &mut Worker, now: Timestamp) -> i64 {
        // sleep: as above.
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        worker.turn(&[], 0, 1, now).await.unwrap();
        pages(&mut self.watch, &self.schema.name).await
    }

    async fn work(
        &self,
        worker: &mut Worker,
        mut done: Vec<Completed>,
        count: usize,
        now: Timestamp,
    ) -> Vec<Completed> {
        let (mut ended, mut turns) = (0, 0);
        while ended < count {
            let turn = worker.turn(&done, LIMIT, 1, now).await.unwrap();
            ended += done.len();
            done = completions(&turn.runs);
            turns += 1;
            assert!(turns < 20 * count, "{ended} of {count} after {turns} turns");
        }
        done
    }
}

/// Deliveries to work on: half with keys, or none.
async fn publish(store: &PostgresStore, from: u64, keys: bool, now: Timestamp) {
    let count = WORK as u64 * 2;
    let key = |n: u64| (keys && n.is_multiple_of(2)).then(|| format!("key-{}", n % 200));
    store.append_alone(&fresh(from, count, key, &["h"], now)).await.unwrap();
}

async fn compare(what: &str, crowd: Crowd, others: &[&str]) {
    let alone = Place::new(Crowd::None, true).await.cost(others, at(10)).await;
    let beside = Place::new(crowd, true).await.cost(others, at(10)).await;
    println!("{what}: {beside:.1} pages a delivery, {alone:.1} without");
    assert!(beside <= MOST * alone, "{what}: {beside:.1} pages a delivery, {alone:.1} without");
}

#[tokio::test]
async fn beside_a_million_of_a_handler_that_nobody_has() {
    compare("unknown handler", Crowd::Of("unknown", 0, None), &[]).await;
}

#[tokio::test]
async fn beside_a_million_of_a_handler_at_its_limit() {
    compare("handler at its limit", Crowd::Of("full", 0, None), &["full"]).await;
}

#[tokio::test]
async fn beside_a_million_followers_of_a_blocked_key() {
    compare("followers of a blocked key", Crowd::Of("h", 0, Some("blocked")), &[]).await;
}

#[tokio::test]
async fn before_a_million_due_next_week() {
    compare("due next week", Crowd::Of("h", 700_000, None), &[]).await;
}

#[tokio::test]
async fn at_the_head_of_a_million_that_are_due() {
    compare("deep backlog", Crowd::Of("h", 5, None), &[]).await;
}

/// An old snapshot keeps every dead row and its index entries. The cursor passes them; a key's first delivery is found behind those
/// of its own, which is why these have none.
#[tokio::test]
async fn while_an_old_transaction_is_open() {
    let mut place = Place::new(Crowd::None, false).await;
    let mut old = connect().await;
    let mut snapshot = old.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    sqlx::query("SELECT count(*) FROM pg_class").execute(&mut *snapshot).await.unwrap();
    let store = place.schema.builder().build().unwrap();
    let mut costs = Vec::new();
    for round in 0..4 {
        // What was completed half a minute ago is behind every cursor.
        let start = 60 * round;
        costs.push(place.cost(&[], at(start + 10)).await);
        publish(&store, 10_000 * (round.unsigned_abs() + 1), false, at(start + 61)).await;
    }
    store.close().await.unwrap();
    println!("an old transaction: {costs:.1?} pages a delivery");
    assert!(costs[3] <= MOST * costs[0], "claims slow down: {costs:.1?} pages a delivery");
}

/// Nor can the versions of a session's row go, one a turn: the next turn does not pass them.
#[tokio::test]
async fn a_sessions_row_while_an_old_transaction_is_open() {
    let mut place = Place::new(Crowd::None, false).await;
    let mut old = connect().await;
    let mut snapshot = old.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    sqlx::query("SELECT count(*) FROM pg_class").execute(&mut *snapshot).await.unwrap();
    let store = place.schema.builder().build().unwrap();
    let mut worker = Worker::new(&store, &["h"], at(10)).await;
    let (mut costs, mut done) = (Vec::new(), place.work(&mut worker, Vec::new(), WORK, at(10)).await);
    for round in 0..4 {
        let (now, turns) = (at(100 * (round + 1)), 700);
        publish(&store, 10_000 * (round.unsigned_abs() + 1), false, now).await;
        let before = place.told(&mut worker, now).await;
        for _ in 0..turns {
            let turn = worker.turn(&done, 1, 1, now).await.unwrap();
            done = completions(&turn.runs);
            assert_eq!(done.len(), 1);
        }
        let after = place.told(&mut worker, now).await;
        costs.push((after - before) as f64 / f64::from(turns));
    }
    println!("an old transaction: {costs:.1?} pages a turn");
    assert!(costs[3] <= MOST * costs[0], "turns slow down: {costs:.1?} pages a turn");
    worker.close(at(600)).await;
    store.close().await.unwrap();
}
