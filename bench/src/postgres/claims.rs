//! What a claim costs beside backlogs: pages of the tables and indexes that it reads, counted by the server.

use std::sync::Arc;
use std::time::Duration;

use relaybus::store::{AppendBatch, ClaimRequest, HandlerSlots, SessionRequest, Settlement, TurnRequest, Verdict};
use relaybus::{BoxError, EventStore, HandlerId, OrderingKey, Timestamp};
use relaybus_stores::PostgresStore;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row};

use super::cost::{Cost, median};
use super::dispatch::{Worker, drain, fill};
use super::report::{Goal, Report};
use super::server::Server;
use crate::events::{HANDLER, event};

const DATABASE: &str = "bench_claims";
const OTHER: &str = "somebody-elses";
/// Deliveries of a round, by ten.
const DUE: usize = 1_000;
/// Pages that were found in memory or read, of the tables that a claim reads and of their indexes.
const PAGES: &str = "SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0))::float8 \
    FROM pg_statio_user_tables WHERE relname IN ('relaybus_deliveries', 'relaybus_events', 'relaybus_sessions')";

/// What the server does by itself would be counted too.
const QUIET: &str = "ALTER TABLE relaybus_deliveries SET (autovacuum_enabled = off); \
    ALTER TABLE relaybus_events SET (autovacuum_enabled = off)";
/// How long a process of the server that ends may take to tell what it did.
const TELLING: Duration = Duration::from_millis(500);

/// What is beside the deliveries that are claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Little,
    Pending,
    NextWeek,
    LongTransaction,
    UnknownHandler,
    HandlerAtItsLimit,
    BlockedKey,
}

const CASES: [(Beside, &str); 6] = [
    (Beside::Pending, "pending"),
    (Beside::NextWeek, "due next week"),
    (Beside::LongTransaction, "settled while a transaction is open elsewhere"),
    (Beside::UnknownHandler, "of a handler that nobody here has"),
    (Beside::HandlerAtItsLimit, "of a handler at its limit"),
    (Beside::BlockedKey, "behind a blocked key"),
];

/// Each backlog beside a queue that has little.
pub(crate) async fn run(server: &mut Server, rounds: usize, percent: usize) -> Result<Report, BoxError> {
    let mut report = Report::new("claims");
    let large = 10_000 * percent;
    let (pages, cost) = claim(server, Beside::Little, large, rounds).await?;
    report.figure("a claim by ten beside 1,000 pending: pages a delivery", pages, "pages", Goal::None);
    report.cost("a claim by ten beside 1,000 pending: a delivery", cost);
    for (beside, name) in CASES {
        // Of settled deliveries there are fewer: they are settled one by one.
        let size = if beside == Beside::LongTransaction { large / 20 } else { large };
        let (others, other) = claim(server, beside, size, rounds).await?;
        let name = format!("a claim by ten beside {size} {name} / 1,000 pending");
        report.figure(&format!("{name}: pages"), others / pages, "ratio", Goal::AtMost(1.5));
        report.ratios(&name, other, cost, Goal::None);
    }
    server.drop(DATABASE).await?;
    Ok(report)
}

/// Pages and costs of a delivery that is claimed beside something.
async fn claim(server: &mut Server, beside: Beside, size: usize, rounds: usize) -> Result<(f64, Cost), BoxError> {
    server.fresh(DATABASE).await?;
    let store = PostgresStore::builder(server.url(DATABASE)).build()?;
    store.setup().await?;
    let mut watch = server.options(DATABASE)?.connect().await?;
    watch.execute(sqlx::raw_sql(QUIET)).await?;
    let mut elsewhere = server.options(DATABASE)?.connect().await?;
    let own = [HandlerId::from_static(HANDLER)];
    if beside == Beside::LongTransaction {
        elsewhere
            .execute(sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM relaybus_meta"))
            .await?;
        fill(&store, &own, size.next_multiple_of(1_000)).await?;
        drain(&store, &own, 200, size.next_multiple_of(1_000)).await?;
    }
    let mut filling = server.options(DATABASE)?.connect().await?;
    crowd(&store, &mut filling, beside, size).await?;
    filling.close().await?;
    fill_more(&store, &own, DUE * (rounds + 1), beside).await?;
    server.settle(DATABASE).await?;
    let mut costs = Vec::new();
    store.close().await?;
    let mut slots = vec![HandlerSlots::new(own[0].clone(), 10)];
    if beside == Beside::HandlerAtItsLimit {
        slots.push(HandlerSlots::new(HandlerId::from_static(OTHER), 0));
    }
    let store = PostgresStore::builder(server.url(DATABASE)).build()?;
    let before = counted(&mut watch).await?;
    let mut worker = Worker::open(&store, slots).await?;
    for _ in 0..rounds {
        let (_, cost) = server.measure(worker.drain(10, DUE)).await?;
        costs.push(cost.each(DUE));
    }
    // Its connection ends with it, and tells what it read; a session that is closed would look through what is due.
    drop(worker);
    let pages = counted(&mut watch).await? - before;
    store.close().await?;
    elsewhere.close().await?;
    watch.close().await?;
    Ok((pages / (DUE * rounds) as f64, median(&costs)))
}

/// Pages so far, once the sessions that ended have told theirs.
async fn counted(watch: &mut PgConnection) -> Result<f64, BoxError> {
    tokio::time::sleep(TELLING).await;
    Ok(sqlx::query(PAGES).fetch_one(watch).await?.try_get(0)?)
}

async fn fill_more(store: &PostgresStore, own: &[HandlerId; 1], count: usize, beside: Beside) -> Result<(), BoxError> {
    let handlers: Arc<[HandlerId]> = Arc::from(own.as_slice());
    // The backlog that could be claimed comes later than what is claimed, the others come before.
    let at = if beside == Beside::Pending { 1_700_000_000_000_000 } else { 1_700_000_060_000_000 };
    let now = Timestamp::from_micros(at);
    for first in (0..count).step_by(1_000) {
        let events = (0..1_000).map(|n| event(20_000_000 + first + n, &handlers, now)).collect();
        store.append_alone(&AppendBatch::new(events, now)).await?;
    }
    Ok(())
}

/// Stores one delivery of the crowd, and copies it.
async fn crowd(store: &PostgresStore, filling: &mut PgConnection, beside: Beside, size: usize) -> Result<(), BoxError> {
    if matches!(beside, Beside::Little | Beside::LongTransaction) {
        return Ok(());
    }
    let name = match beside {
        Beside::UnknownHandler | Beside::HandlerAtItsLimit => OTHER,
        _ => HANDLER,
    };
    let handlers: Arc<[HandlerId]> = Arc::from([HandlerId::from_static(name)]);
    let now = Timestamp::from_micros(1_700_000_030_000_000);
    let mut first = event(10_000_000, &handlers, now);
    if beside == Beside::NextWeek {
        first.due_at = now.after(Duration::from_secs(7 * 24 * 3600));
    }
    if beside == Beside::BlockedKey {
        first.envelope.key = Some(OrderingKey::new("blocked")?);
    }
    store.append_alone(&AppendBatch::new(vec![first], now)).await?;
    let copy = format!(
        "INSERT INTO relaybus_deliveries (id, available_at, sequence, key, lane, handler, event_id)
         SELECT nextval('relaybus_numbers'), d.available_at, CASE WHEN d.key IS NULL THEN NULL ELSE d.sequence + g END, d.key,
           CASE WHEN d.key IS NULL THEN g % 256 ELSE d.lane END, d.handler, d.event_id
         FROM relaybus_deliveries d, generate_series(1, {size}) g"
    );
    filling.execute(sqlx::raw_sql(AssertSqlSafe(copy))).await?;
    if beside == Beside::BlockedKey {
        block(store, now).await?;
    }
    Ok(())
}

/// The head of the key failed, and is tried again much later.
async fn block(store: &PostgresStore, now: Timestamp) -> Result<(), BoxError> {
    let handler = HandlerId::from_static(HANDLER);
    let request = SessionRequest::new("holder", vec![handler.clone()], Duration::from_secs(30), now);
    let mut session = store.open_session(&request).await?;
    let slots = [HandlerSlots::new(handler, 1)];
    let turn = store.turn(&mut session, &TurnRequest::new(now).claiming(ClaimRequest::new(&slots, 1, 1))).await?;
    let head = turn.runs.first().and_then(|run| run.deliveries.first()).ok_or("the head of the key was not claimed")?;
    let verdict = Verdict::Reschedule { due_at: now.after(Duration::from_secs(1_000_000)), error: "{}".to_owned() };
    store.settle(&mut session, &[Settlement::new(head.lease.clone(), verdict)], now).await?;
    store.close_session(session, now).await?;
    Ok(())
}
