//! The SQLite store beside the same rows written by bare prepared statements through sqlx, in the same run.
//!
//! "loop" is one prepared statement a row between `BEGIN IMMEDIATE` and `COMMIT`, each a call; "one text" is the same
//! statements sent as one text.

use std::sync::Arc;
use std::time::Duration;

use relaybus::store::{
    AppendBatch, ClaimRequest, Completed, HandlerSlots, NewEvent, RunPart, SessionRequest, Turn, TurnRequest,
};
use relaybus::{EventStore, HandlerId, OrderingKey, Timestamp};
use relaybus_stores::SqliteStore;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, SqlSafeStr};

use crate::effort::{Effort, Watch, median};
use crate::events::{HANDLER, HEADERS, PAYLOAD, event, id, runtime};
use crate::figures::{Figure, Outcome};

struct Bench {
    store: SqliteStore,
    raw: SqliteConnection,
    handlers: Arc<[HandlerId]>,
    number: usize,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn open() -> Result<Self, relaybus::BoxError> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("bench.db");
        let store = SqliteStore::open(&path).await?;
        store.setup().await?;
        // The raw side writes the same tables in a file of its own, so that neither side's backlog slows the other.
        let raw_path = folder.path().join("raw.db");
        let raw_store = SqliteStore::open(&raw_path).await?;
        raw_store.setup().await?;
        raw_store.close().await?;
        let raw = SqliteConnectOptions::new()
            .filename(&raw_path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(false)
            .disable_statement_logging()
            .connect()
            .await?;
        Ok(Self { store, raw, handlers: Arc::from([HandlerId::from_static(HANDLER)]), number: 0, _folder: folder })
    }

    async fn publish(&mut self, batch: usize) -> Result<(), relaybus::BoxError> {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        let events = (0..batch).map(|i| event(self.number + i, &self.handlers, now)).collect();
        self.number += batch;
        self.store.append_alone(&AppendBatch::new(events, now)).await?;
        Ok(())
    }

    async fn publish_raw(&mut self, batch: usize) -> Result<(), relaybus::BoxError> {
        self.raw.execute("BEGIN IMMEDIATE").await?;
        for _ in 0..batch {
            let id = id(self.number);
            self.number += 1;
            let inserted = sqlx::query(
                "INSERT INTO relaybus_events (id, created_at, type, source, payload, headers, handlers) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(id.into_bytes())
            .bind(1_700_000_000_000_000_i64)
            .bind("order.placed.v1")
            .bind("bench")
            .bind(PAYLOAD)
            .bind(HEADERS)
            .bind(r#"["send-confirmation"]"#)
            .execute(&mut self.raw)
            .await?;
            sqlx::query("INSERT INTO relaybus_ready (handler, due_at, seq) VALUES ($1, $2, $3)")
                .bind(HANDLER)
                .bind(1_700_000_000_000_000_i64)
                .bind(inserted.last_insert_rowid())
                .execute(&mut self.raw)
                .await?;
        }
        self.raw.execute("COMMIT").await?;
        Ok(())
    }
}

/// Interleaved rounds of both sides; the median of each, an event.
async fn rounds(
    bench: &mut Bench,
    rounds: usize,
    calls: usize,
    batch: usize,
) -> Result<(Effort, Effort), relaybus::BoxError> {
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let watch = Watch::start();
        for _ in 0..calls {
            bench.publish(batch).await?;
        }
        ours.push(watch.stop().each(calls * batch));
        let watch = Watch::start();
        for _ in 0..calls {
            bench.publish_raw(batch).await?;
        }
        raw.push(watch.stop().each(calls * batch));
    }
    Ok((median(&ours), median(&raw)))
}

/// Publishing, by one and by a hundred.
pub(crate) fn publish(calls: usize) -> Outcome {
    runtime()?.block_on(async {
        let mut bench = Bench::open().await?;
        let mut figures = Vec::new();
        for (batch, calls) in [(1, calls), (10, calls / 4), (100, calls / 20)] {
            let (ours, raw) = rounds(&mut bench, 5, calls.max(1), batch).await?;
            figures.extend(Figure::effort(&format!("sqlite: publish {batch}, an event"), ours));
            figures.extend(Figure::effort(&format!("sqlite: publish {batch}, an event, prepared loop"), raw));
            figures.extend(Figure::ratios(&format!("sqlite: publish {batch}, prepared loop / ours"), raw, ours));
        }
        Ok(figures)
    })
}

/// Settling and claiming no-op deliveries from a backlog, by ten and by two hundred.
pub(crate) fn dispatch(deliveries: usize) -> Outcome {
    runtime()?.block_on(async {
        let mut figures = Vec::new();
        for batch in [10, 50, 200] {
            let (mut ours, mut looped, mut one_text) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..5 {
                let mut bench = Bench::open().await?;
                for _ in 0..deliveries.div_ceil(1000) {
                    bench.publish(1000).await?;
                    bench.publish_raw(1000).await?;
                }
                let count = deliveries.div_ceil(1000) * 1000;
                ours.push(drain(&bench.store, batch, count).await?);
                looped.push(delete_in_loops(&mut bench.raw, batch, count / 2).await?);
                one_text.push(delete_in_one_text(&mut bench.raw, batch, count / 2, count / 2).await?);
            }
            let (ours, looped, one_text) = (median(&ours), median(&looped), median(&one_text));
            let name = |what: &str| format!("sqlite: dispatch {batch}, {what}");
            figures.extend(Figure::effort(&name("a delivery"), ours));
            figures.extend(Figure::effort(&name("a delivery, prepared loop"), looped));
            figures.extend(Figure::effort(&name("a delivery, one text"), one_text));
            figures.extend(Figure::ratios(&name("prepared loop / ours"), looped, ours));
            figures.extend(Figure::ratios(&name("one text / ours"), one_text, ours));
        }
        Ok(figures)
    })
}

async fn drain(store: &SqliteStore, batch: usize, count: usize) -> Result<Effort, relaybus::BoxError> {
    let now = Timestamp::from_micros(1_700_000_001_000_000);
    let handler = HandlerId::from_static(HANDLER);
    let request = SessionRequest::new("bench", vec![handler.clone()], Duration::from_secs(30), now);
    let mut session = store.open_session(&request).await?;
    let slots = [HandlerSlots::new(handler, batch)];
    let mut completed: Vec<Completed> = Vec::new();
    let mut done = 0;
    let watch = Watch::start();
    while done < count {
        let turn: Turn = store
            .turn(
                &mut session,
                &TurnRequest::new(now).completing(&completed).claiming(ClaimRequest::new(&slots, batch, 20)),
            )
            .await?;
        done += completed.len();
        completed.clear();
        for run in turn.runs {
            for claimed in run.deliveries {
                completed.push(Completed::new(claimed.lease, RunPart::Last));
            }
        }
    }
    Ok(watch.stop().each(count))
}

const DELETE: &str = "DELETE FROM relaybus_ready WHERE handler = $1 AND due_at = $2 AND seq = $3";

async fn delete_in_loops(raw: &mut SqliteConnection, batch: usize, count: usize) -> Result<Effort, relaybus::BoxError> {
    let watch = Watch::start();
    for start in (0..count).step_by(batch) {
        raw.execute("BEGIN IMMEDIATE").await?;
        for seq in start..(start + batch).min(count) {
            sqlx::query(DELETE)
                .bind(HANDLER)
                .bind(1_700_000_000_000_000_i64)
                .bind(i64::try_from(seq)? + 1)
                .execute(&mut *raw)
                .await?;
        }
        raw.execute("COMMIT").await?;
    }
    Ok(watch.stop().each(count))
}

async fn delete_in_one_text(
    raw: &mut SqliteConnection,
    batch: usize,
    first: usize,
    count: usize,
) -> Result<Effort, relaybus::BoxError> {
    let mut text = String::from("BEGIN IMMEDIATE;\n");
    for row in 0..batch {
        let bind = 3 + row;
        text.push_str(&format!("DELETE FROM relaybus_ready WHERE handler = $1 AND due_at = $2 AND seq = ${bind};\n"));
    }
    text.push_str("COMMIT;");
    let text: Arc<str> = text.into();
    let watch = Watch::start();
    for start in (first..first + count).step_by(batch) {
        let mut query =
            sqlx::query(AssertSqlSafe(text.clone()).into_sql_str()).bind(HANDLER).bind(1_700_000_000_000_000_i64);
        for seq in start..start + batch {
            query = query.bind(i64::try_from(seq)? + 1);
        }
        query.execute(&mut *raw).await?;
    }
    Ok(watch.stop().each(count))
}

/// A claim of ten beside backlogs of different sizes and kinds: its cost must not grow.
pub(crate) fn backlog(large: usize) -> Outcome {
    let next_week = Duration::from_secs(7 * 24 * 3600);
    // What is due now, what is due next week, and what waits behind one blocked key.
    let kinds = [(1_000, 0, 0), (large, 0, 0), (1_000, large, 0), (1_000, 0, large)];
    runtime()?.block_on(async {
        let mut costs = vec![Vec::new(); kinds.len()];
        let mut benches = Vec::new();
        for (due, later, blocked) in kinds {
            let mut bench = Bench::open().await?;
            bench.fill(blocked, Duration::ZERO, Some("blocked")).await?;
            bench.fill(later, next_week, None).await?;
            bench.fill(due, Duration::ZERO, None).await?;
            benches.push(bench);
        }
        for _ in 0..ROUNDS_OF_BACKLOG {
            for (bench, costs) in benches.iter_mut().zip(&mut costs) {
                // As many again as are taken, so that each round meets the same backlog.
                bench.fill(1_000, Duration::ZERO, None).await?;
                costs.push(drain(&bench.store, 10, 1_000).await?);
            }
        }
        let costs: Vec<Effort> = costs.iter().map(|costs| median(costs)).collect();
        let mut figures =
            Vec::from(Figure::effort("sqlite: claim and settle 10 beside 1,000 pending, a delivery", costs[0]));
        for (cost, what) in costs[1..].iter().zip(["pending", "due next week", "behind a blocked key"]) {
            figures.extend(Figure::ratios(
                &format!("sqlite: claim beside {large} {what} / 1,000 pending"),
                *cost,
                costs[0],
            ));
        }
        Ok(figures)
    })
}

const ROUNDS_OF_BACKLOG: usize = 9;

impl Bench {
    /// Stores `count` events that are due after `delay`.
    async fn fill(&mut self, count: usize, delay: Duration, key: Option<&str>) -> Result<(), relaybus::BoxError> {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        for _ in 0..count / 1000 {
            let mut events: Vec<NewEvent> = (0..1000).map(|i| event(self.number + i, &self.handlers, now)).collect();
            for event in &mut events {
                event.due_at = now.after(delay);
                event.envelope.key = key.map(|key| OrderingKey::stored(key.to_owned()));
            }
            self.number += 1000;
            self.store.append_alone(&AppendBatch::new(events, now)).await?;
        }
        if count > 0 && key.is_some() {
            self.block().await?;
        }
        Ok(())
    }

    /// Somebody who is gone holds the head of the key.
    async fn block(&self) -> Result<(), relaybus::BoxError> {
        let now = Timestamp::from_micros(1_700_000_001_000_000);
        let handler = HandlerId::from_static(HANDLER);
        let request = SessionRequest::new("holder", vec![handler.clone()], Duration::from_secs(3600), now);
        let mut session = self.store.open_session(&request).await?;
        let slots = [HandlerSlots::new(handler, 1)];
        let turn =
            self.store.turn(&mut session, &TurnRequest::new(now).claiming(ClaimRequest::new(&slots, 1, 1))).await?;
        assert_eq!(turn.runs.len(), 1, "the head is held");
        Ok(())
    }
}
