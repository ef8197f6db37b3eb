//! The flaws that an exhaustive search found in the protocol's first text, each driven by hand against the store as built.

use relaybus::store::{
    AppendBatch, AppendOutcome, Completed, DeliveryQuery, DeliveryStatus, PurgeRequest, Requeued, RunPart, Settled,
    Settlement, TurnRequest, Verdict,
};
use relaybus::{Error, EventStore, Timestamp};
use relaybus_stores::PostgresStore;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row, ValueRef};

use crate::kit::{LEASE, Schema, Worker, after_the_lease, at, connect, event, ids, named};

async fn store(schema: &Schema) -> PostgresStore {
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    store
}

async fn number(connection: &mut PgConnection, sql: String) -> i64 {
    sqlx::query(AssertSqlSafe(sql)).fetch_one(connection).await.unwrap().get(0)
}

fn event_for_other(now: Timestamp) -> AppendBatch {
    AppendBatch::new(vec![event("b", None, &["other"], now)], now)
}

/// Lanes whose owner has no row, or whose owner does not know the handler: nobody would ever claim from them.
async fn orphaned_lanes(schema: &Schema) -> i64 {
    let text = format!(
        "SELECT count(*) FROM {0}.relaybus_handlers h, generate_series(0, 255) l WHERE get_byte(h.owners, l) <> 0
         AND NOT EXISTS (SELECT 1 FROM {0}.relaybus_sessions s WHERE s.no = get_byte(h.owners, l) AND h.id = ANY(s.handlers))",
        schema.name
    );
    number(&mut connect().await, text).await
}

fn again(seconds: i64) -> Verdict {
    Verdict::Reschedule { due_at: at(seconds), error: "{}".to_owned() }
}

/// F1: a worker that was taken over and wakes up takes no lane, and leaves none without an owner.
#[tokio::test]
async fn f1_a_dead_worker_that_wakes_up_orphans_no_lane() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut stalled = Worker::new(&store, &["h"], at(0)).await;
    let mut heir = Worker::new(&store, &["h"], after_the_lease()).await;
    heir.sweep(&[], 1, after_the_lease()).await.unwrap();
    for _ in 0..3 {
        assert!(matches!(stalled.sweep(&[], 1, after_the_lease()).await, Err(Error::SessionLost)));
        assert_eq!(orphaned_lanes(&schema).await, 0);
    }
    store.append_alone(&named(&["e"], None, at(0))).await.unwrap();
    assert_eq!(ids(&heir.claim(1, after_the_lease()).await), ["e"]);
    store.close().await.unwrap();
}

/// F3: a statement that runs late, behind a newer one of its session, changes nothing and hands out nothing.
#[tokio::test]
async fn f3_a_late_statement_is_fenced_by_its_number() {
    let schema = Schema::new();
    let store = store(&schema).await;
    store.append_alone(&named(&["e1", "e2"], None, at(0))).await.unwrap();
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    assert_eq!(worker.claim(1, at(1)).await.len(), 2);
    let mut connection = connect().await;
    let sessions = format!("{}.relaybus_sessions", schema.name);
    let state = format!("SELECT owner, turn, in_flight::text, lease_expires_at::text FROM {sessions}");
    let before = sqlx::query(AssertSqlSafe(state.clone())).fetch_one(&mut connection).await.unwrap();
    let (owner, turn): (String, i64) = (before.get(0), before.get(1));
    let text = store.texts().into_iter().find(|(name, _)| name == "settle_turn").unwrap().1;
    let prepare = format!("PREPARE late AS {text}");
    sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut connection).await.unwrap();
    for (number, recorded) in [(turn - 1, false), (turn, false), (turn + 1_000, true)] {
        let execute = format!(
            "EXECUTE late('{owner}', '2026-01-01', {number}, '{{77}}', '{{}}', '{{}}', '{{}}', '{{}}', '2020-01-01', true, NULL)"
        );
        let row = sqlx::raw_sql(AssertSqlSafe(execute)).fetch_one(&mut connection).await.unwrap();
        assert_eq!(!row.try_get_raw("recorded").unwrap().is_null(), recorded, "statement {number} after {turn}");
        let after = sqlx::query(AssertSqlSafe(state.clone())).fetch_one(&mut connection).await.unwrap();
        assert_eq!(after.get::<String, _>(3), before.get::<String, _>(3), "no statement shortens a lease");
        if !recorded {
            assert_eq!(after.get::<String, _>(2), before.get::<String, _>(2), "what it runs is as before");
        }
    }
    store.close().await.unwrap();
}

/// F5: a session that outlived its lease renews as long as nobody took it over.
#[tokio::test]
async fn f5_an_expired_session_renews() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    let mut renewal = TurnRequest::new(after_the_lease());
    renewal.renew = Some(after_the_lease().after(LEASE));
    store.turn(&mut worker.session, &renewal).await.unwrap();
    let mut other = Worker::new(&store, &["h"], after_the_lease()).await;
    assert_eq!(other.sweep(&[], 1, after_the_lease()).await.unwrap().taken_over, 0);
    store.close().await.unwrap();
}

/// F7: a crash right after a failure charges neither the failed delivery again nor its follower.
#[tokio::test]
async fn f7_a_crash_after_a_failure_charges_nothing_more() {
    let schema = Schema::new();
    let store = store(&schema).await;
    store.append_alone(&named(&["e1", "e2", "e3"], Some("k"), at(0))).await.unwrap();
    let mut dead = Worker::new(&store, &["h"], at(0)).await;
    dead.sweep(&[], 0, at(0)).await.unwrap();
    let turn = dead.turn(&[], 1, 3, at(1)).await.unwrap();
    let run = &turn.runs[0].deliveries;
    assert_eq!(ids(run), ["e1", "e2", "e3"]);
    let mut settlement = Settlement::new(run[0].lease.clone(), again(1));
    settlement.rest = vec![run[1].lease.clone(), run[2].lease.clone()];
    assert_eq!(dead.settle(settlement, at(1)).await, Settled::Applied);
    let mut heir = Worker::new(&store, &["h"], after_the_lease()).await;
    for (id, attempts) in [("e1", 1), ("e2", 0), ("e3", 0)] {
        let head = heir.claim(1, after_the_lease()).await;
        assert_eq!((ids(&head), head[0].attempts), (vec![id], attempts));
        assert_eq!(heir.complete(&head[0], after_the_lease()).await, Settled::Applied);
    }
    store.close().await.unwrap();
}

/// F9 (a): an earlier delivery that comes back to a hot key is found while the key is hot.
#[tokio::test]
async fn f9_an_earlier_delivery_that_comes_back_is_found() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let names: Vec<String> = (0..60).map(|n| format!("e{n:02}")).collect();
    store.append_alone(&named(&names.iter().map(String::as_str).collect::<Vec<_>>(), Some("k"), at(0))).await.unwrap();
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    let head = worker.claim(1, at(1)).await;
    let bury = Verdict::Bury { error: "{}".to_owned(), charge: true };
    assert_eq!(worker.settle(Settlement::new(head[0].lease.clone(), bury), at(1)).await, Settled::Applied);
    let mut done: Vec<Completed> = Vec::new();
    let mut order = Vec::new();
    for second in 0..200_i64 {
        // The key goes on with every turn; time passes, so that sweeps come by themselves.
        let now = at(2 + second / 4);
        let turn = worker.turn(&done, 1, 1, now).await.unwrap();
        done = crate::kit::completions(&turn.runs);
        order.extend(
            turn.runs.iter().flat_map(|run| ids(&run.deliveries).into_iter().map(str::to_owned).collect::<Vec<_>>()),
        );
        if order.len() == 10 {
            let requeued = store.requeue(&[head[0].lease.delivery_id()], now).await.unwrap();
            assert_eq!(requeued, [Requeued::Requeued]);
            order.push("requeued".to_owned());
        }
        if order.iter().any(|id| id == "e00") {
            let between = order.iter().position(|id| id == "e00").unwrap()
                - order.iter().position(|id| id == "requeued").unwrap();
            assert!(between <= 12, "found after {between} others");
            store.close().await.unwrap();
            return;
        }
    }
    panic!("the requeued head was passed over: {order:?}");
}

/// F9 (b), F14 (e): lanes that are to be handed back drain although their keys are hot: a key does not go on in a lane that leaves.
#[tokio::test]
async fn f9_lanes_with_hot_keys_are_handed_back() {
    const KEYS: usize = 300;
    let schema = Schema::new();
    let store = store(&schema).await;
    for part in 0..12 {
        let events =
            (0..KEYS).map(|key| event(&format!("{key:03}-{part:02}"), Some(&format!("k{key}")), &["h"], at(0)));
        store.append_alone(&AppendBatch::new(events.collect(), at(0))).await.unwrap();
    }
    let mut worker = Worker::new(&store, &["h"], at(1)).await;
    let mut done = crate::kit::completions(&worker.sweep(&[], KEYS, at(1)).await.unwrap().runs);
    assert!(done.len() > 200, "nearly all lanes are at work: {}", done.len());
    let mut other = Worker::new(&store, &["h"], at(1)).await;
    let mut seen: Vec<String> = Vec::new();
    for second in 2..9 {
        // Each turn completes and goes on with every key it may.
        let turn = worker.sweep(&done, KEYS, at(second)).await.unwrap();
        done = crate::kit::completions(&turn.runs);
        let turn = other.sweep(&[], 5, at(second)).await.unwrap();
        seen.extend(turn.runs.iter().flat_map(|run| run.deliveries.iter()).map(|one| one.event.id.as_str().to_owned()));
    }
    assert!(!seen.is_empty(), "the other worker got no lane in seven turns");
    // The second session has number 2.
    let lanes = format!(
        "SELECT count(*) FROM {}.relaybus_handlers h, generate_series(0, 255) l WHERE get_byte(h.owners, l) = 2",
        schema.name
    );
    assert_eq!(number(&mut connect().await, lanes).await, 128, "half of the lanes");
    assert_eq!(orphaned_lanes(&schema).await, 0);
    store.close().await.unwrap();
}

/// F9 (c): a completion that misses its row because the table was rewritten is found by its index, and its follower waits.
#[tokio::test]
async fn f9_a_rewritten_table_loses_no_completion() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let filler: Vec<String> = (0..300).map(|n| format!("f{n}")).collect();
    let mut filler = named(&filler.iter().map(String::as_str).collect::<Vec<_>>(), None, at(0));
    filler.events.iter_mut().for_each(|new| new.due_at = at(9_000));
    store.append_alone(&filler).await.unwrap();
    store.append_alone(&named(&["e1", "e2"], Some("k"), at(0))).await.unwrap();
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    let head = worker.claim(1, at(1)).await;
    assert_eq!(ids(&head), ["e1"]);
    let deliveries = format!("{}.relaybus_deliveries", schema.name);
    let rewrite = format!("DELETE FROM {deliveries} WHERE available_at > '2026-01-01 02:00Z'");
    sqlx::raw_sql(AssertSqlSafe(rewrite)).execute(&mut connect().await).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("VACUUM FULL {deliveries}"))).execute(&mut connect().await).await.unwrap();
    let done = [Completed::new(head[0].lease.clone(), RunPart::Last)];
    let turn = worker.turn(&done, 5, 1, at(2)).await.unwrap();
    assert_eq!(turn.completed, [Settled::Applied]);
    let mut next: Vec<_> = turn.runs.into_iter().flat_map(|run| run.deliveries).collect();
    next.extend(worker.claim(5, at(2)).await);
    assert_eq!(ids(&next), ["e2"]);
    store.close().await.unwrap();
}

/// F10: an event that gets a handler between the two statements of a purge, and completes, keeps its time.
#[tokio::test]
async fn f10_a_purge_asks_every_condition_again() {
    let schema = Schema::new();
    let store = store(&schema).await;
    store.append_alone(&named(&["e"], None, at(-900_000))).await.unwrap();
    let mut worker = Worker::new(&store, &["h", "late"], at(-900_000)).await;
    let first = worker.claim(1, at(-900_000)).await;
    assert_eq!(worker.complete(&first[0], at(-900_000)).await, Settled::Applied);
    let text = |name: &str| store.texts().into_iter().find(|(other, _)| other == name).unwrap().1;
    let mut purger = connect().await;
    let prepare = format!("PREPARE found AS {}", text("purge_candidates").replace(" FOR UPDATE OF e SKIP LOCKED", ""));
    sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut purger).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("PREPARE gone AS {}", text("purge_delete"))))
        .execute(&mut purger)
        .await
        .unwrap();
    // The first statement's snapshot, before its lock.
    let found = sqlx::raw_sql("EXECUTE found('2025-12-30', 3600, 10)").fetch_all(&mut purger).await.unwrap();
    assert_eq!(found.len(), 1);
    let mut later = named(&[], None, at(0));
    later.events.push(event("e", None, &["h", "late"], at(0)));
    assert_eq!(store.append_alone(&later).await.unwrap().outcomes, [AppendOutcome::Known { added: 1 }]);
    let added = worker.claim(1, at(0)).await;
    assert_eq!(worker.complete(&added[0], at(0)).await, Settled::Applied);
    let delete = "EXECUTE gone(ARRAY['\\x0065'::bytea], '2025-12-30', 3600)";
    let row = sqlx::raw_sql(delete).fetch_one(&mut purger).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 0, "it completed just now");
    let mut request = PurgeRequest::new(10);
    request.completed_before = Some(at(-86_400));
    assert_eq!(store.purge(&request).await.unwrap().events, 0);
    store.close().await.unwrap();
}

/// F11: a session whose row is locked, by its own turn or by another takeover, is left for later.
#[tokio::test]
async fn f11_a_takeover_waits_for_nobody() {
    let schema = Schema::new();
    let store = store(&schema).await;
    store.append_alone(&named(&["e"], None, at(0))).await.unwrap();
    let mut dead = Worker::new(&store, &["h"], at(0)).await;
    assert_eq!(dead.claim(1, at(0)).await.len(), 1);
    let mut heir = Worker::new(&store, &["h"], after_the_lease()).await;
    let mut connection = connect().await;
    let mut tx = sqlx::Connection::begin(&mut connection).await.unwrap();
    let lock = format!("SELECT 1 FROM {}.relaybus_sessions WHERE cardinality(in_flight) > 0 FOR UPDATE", schema.name);
    sqlx::query(AssertSqlSafe(lock)).execute(&mut *tx).await.unwrap();
    assert_eq!(heir.sweep(&[], 1, after_the_lease()).await.unwrap().taken_over, 0);
    tx.rollback().await.unwrap();
    let lock = format!("SELECT 1 FROM {}.relaybus_deliveries FOR UPDATE", schema.name);
    let mut tx = sqlx::Connection::begin(&mut connection).await.unwrap();
    sqlx::query(AssertSqlSafe(lock)).execute(&mut *tx).await.unwrap();
    assert_eq!(heir.sweep(&[], 1, after_the_lease()).await.unwrap().taken_over, 0, "its handler may commit");
    tx.rollback().await.unwrap();
    assert_eq!(ids(&heir.claim(1, after_the_lease()).await), ["e"]);
    assert_eq!(orphaned_lanes(&schema).await, 0);
    store.close().await.unwrap();
}

/// A session that cannot be taken over yet keeps nobody from those that expired after it.
#[tokio::test]
async fn f11_a_locked_session_does_not_hide_others() {
    let schema = Schema::new();
    let store = store(&schema).await;
    store.append_alone(&named(&["a"], None, at(0))).await.unwrap();
    let mut first = Worker::new(&store, &["h"], at(0)).await;
    assert_eq!(first.claim(1, at(0)).await.len(), 1);
    store.append_alone(&event_for_other(at(1))).await.unwrap();
    let mut second = Worker::new(&store, &["other"], at(1)).await;
    assert_eq!(second.claim(1, at(1)).await.len(), 1);
    let mut connection = connect().await;
    let mut tx = sqlx::Connection::begin(&mut connection).await.unwrap();
    let number = format!("(SELECT id FROM {}.relaybus_handlers WHERE name = 'h')", schema.name);
    let lock = format!("SELECT 1 FROM {}.relaybus_deliveries WHERE handler = {number} FOR UPDATE", schema.name);
    sqlx::query(AssertSqlSafe(lock)).execute(&mut *tx).await.unwrap();
    let mut heir = Worker::new(&store, &["h", "other"], after_the_lease()).await;
    assert_eq!(heir.sweep(&[], 1, after_the_lease()).await.unwrap().taken_over, 1);
    tx.rollback().await.unwrap();
    assert_eq!(heir.sweep(&[], 1, after_the_lease()).await.unwrap().taken_over, 1);
    store.close().await.unwrap();
}

/// An event that somebody deleted is buried at the first claim, and what is behind it goes on.
#[tokio::test]
async fn deliveries_without_their_event_are_buried() {
    for key in [None, Some("k")] {
        let schema = Schema::new();
        let store = store(&schema).await;
        store.append_alone(&named(&["gone", "there"], key, at(0))).await.unwrap();
        let delete = format!("DELETE FROM {}.relaybus_events WHERE id = '\\x00'::bytea || 'gone'::bytea", schema.name);
        let deleted = sqlx::query(AssertSqlSafe(delete)).execute(&mut connect().await).await.unwrap();
        assert_eq!(deleted.rows_affected(), 1);
        let mut worker = Worker::new(&store, &["h"], at(0)).await;
        let claimed = worker.claim(1, at(0)).await;
        assert_eq!(ids(&claimed), ["there"]);
        assert_eq!(worker.complete(&claimed[0], at(0)).await, Settled::Applied);
        let dead = store.list_deliveries(&DeliveryQuery::all(), at(0)).await.unwrap().deliveries;
        assert_eq!(dead.len(), 1);
        assert_eq!((dead[0].status, dead[0].id.event_id().as_str()), (DeliveryStatus::Dead, "gone"));
        assert!(dead[0].last_error.as_deref().is_some_and(|error| error.contains("was deleted")), "{dead:?}");
        let last = worker.turn(&[], 1, 1, at(0)).await.unwrap();
        assert!(last.runs.is_empty());
        worker.close(at(1)).await;
        store.close().await.unwrap();
    }
}

/// F12: attempts beyond the range of a small integer neither stop a reschedule nor a takeover.
#[tokio::test]
async fn f12_attempts_do_not_run_out() {
    let schema = Schema::new();
    let store = store(&schema).await;
    store.append_alone(&named(&["e"], None, at(0))).await.unwrap();
    let set = format!("UPDATE {}.relaybus_deliveries SET attempts = 32767", schema.name);
    sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut connect().await).await.unwrap();
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    let claimed = worker.claim(1, at(0)).await;
    assert_eq!(worker.settle(Settlement::new(claimed[0].lease.clone(), again(0)), at(0)).await, Settled::Applied);
    assert_eq!(worker.claim(1, at(0)).await[0].attempts, 32_768);
    let mut heir = Worker::new(&store, &["h"], after_the_lease()).await;
    assert_eq!(heir.claim(1, after_the_lease()).await[0].attempts, 32_769);
    store.close().await.unwrap();
}

/// F13: a session is taken over only after its lease and the margin for clocks.
#[tokio::test]
async fn f13_a_takeover_keeps_a_margin_for_clocks() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let _dead = Worker::new(&store, &["h"], at(0)).await;
    let mut heir = Worker::new(&store, &["h"], at(0)).await;
    heir.sweep(&[], 1, at(30)).await.unwrap();
    assert_eq!(heir.sweep(&[], 1, at(30)).await.unwrap().taken_over, 0, "within the margin of a second");
    assert_eq!(heir.sweep(&[], 1, at(31)).await.unwrap().taken_over, 1);
    store.close().await.unwrap();
}

/// F14 (c): an application whose transactions are serializable by default does not make the store's own so.
#[tokio::test]
async fn f14_the_default_isolation_of_others_does_no_harm() {
    let schema = Schema::new();
    let strict = crate::kit::options().options([("default_transaction_isolation", "serializable")]);
    let store = PostgresStore::with_options(strict).schema(&schema.name).build().unwrap();
    store.setup().await.unwrap();
    let mut dead = Worker::new(&store, &["h"], at(0)).await;
    store.append_alone(&named(&["e"], Some("k"), at(0))).await.unwrap();
    dead.claim(1, at(0)).await;
    let mut heirs = Vec::new();
    for _ in 0..6 {
        let store = store.clone();
        heirs.push(tokio::spawn(async move {
            let mut heir = Worker::new(&store, &["h"], after_the_lease()).await;
            let claimed = heir.claim(1, after_the_lease()).await;
            heir.close(after_the_lease()).await;
            claimed.len()
        }));
    }
    let mut claimed = 0;
    for heir in heirs {
        claimed += heir.await.unwrap();
    }
    assert!(claimed <= 6, "each heir may have held it for a while");
    assert_eq!(orphaned_lanes(&schema).await, 0);
    store.close().await.unwrap();
}
