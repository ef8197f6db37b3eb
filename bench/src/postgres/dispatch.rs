//! Settling and claiming no-op deliveries from a backlog by the store, beside deleting as many rows by their ids.

use std::sync::Arc;
use std::time::Duration;

use relaybus::store::{AppendBatch, ClaimRequest, Completed, HandlerSlots, RunPart, SessionRequest, TurnRequest};
use relaybus::{BoxError, EventStore, HandlerId, Timestamp};
use relaybus_stores::PostgresStore;
use relaybus_stores::postgres::PostgresSession;
use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions, Connection, Executor};

use super::cost::median;
use super::publish::rate;
use super::report::{Goal, Plot, Report};
use super::server::Server;
use crate::events::{HANDLER, event};

const OURS: &str = "bench_dispatch";
const LIMIT: &str = "bench_dispatch_limit";
/// As the rows of deliveries that are deleted by id, with one index.
const TABLE: &str = "CREATE TABLE del (id bigint PRIMARY KEY, event_id uuid, lane smallint, handler text)";
const FILL: &str = "INSERT INTO del SELECT g, gen_random_uuid(), g % 256, 'send-confirmation' \
    FROM generate_series($1::bigint, $2::bigint) g";
const DELETE: &str = "DELETE FROM del d USING unnest($1::bigint[]) AS t(id) WHERE d.id = t.id";

/// Deliveries in one call of the store, and the goal for the ratio.
const BATCHES: [(usize, usize, Goal); 2] = [(10, 10_000, Goal::None), (200, 40_000, Goal::AtLeast(0.3))];

/// Interleaved rounds at each size of batch, and one handler beside a hundred.
pub(crate) async fn run(server: &mut Server, rounds: usize, percent: usize) -> Result<Report, BoxError> {
    let mut report = Report::new("dispatch");
    let mut bars = Vec::new();
    for (batch, deliveries, goal) in BATCHES {
        let count = (deliveries * percent / 100).next_multiple_of(1_000);
        let (mut ours, mut least) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(through_store(server, 1, batch, count).await?);
            least.push(by_id(server, batch, 4 * count).await?);
        }
        let (ours, least) = (median(&ours), median(&least));
        report.cost(&format!("dispatch by {batch}: a delivery"), ours);
        report.cost(&format!("dispatch by {batch}: a delivery, deleting by id"), least);
        report.ratios(&format!("dispatch by {batch}: deleting by id / ours"), least, ours, goal);
        bars.push((format!("by {batch} relaybus"), rate(ours)));
        bars.push((format!("by {batch} deleting by id"), rate(least)));
    }
    many_handlers(server, rounds, percent, &mut report).await?;
    report.plots.push(Plot::new("dispatch", "Deliveries settled and claimed a second, one session", bars));
    Ok(report)
}

async fn many_handlers(
    server: &mut Server,
    rounds: usize,
    percent: usize,
    report: &mut Report,
) -> Result<(), BoxError> {
    let count = (20_000 * percent / 100).next_multiple_of(1_000);
    for batch in [10, 200] {
        let (mut one, mut hundred) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            one.push(through_store(server, 1, batch, count).await?);
            hundred.push(through_store(server, 100, batch, count).await?);
        }
        let (one, hundred) = (median(&one), median(&hundred));
        report.cost(&format!("100 handlers at work by {batch}: a delivery"), hundred);
        report.ratios(
            &format!("100 handlers at work by {batch}: one handler / 100"),
            one,
            hundred,
            Goal::AtLeast(0.75),
        );
    }
    server.drop(OURS).await?;
    server.drop(LIMIT).await
}

async fn by_id(server: &mut Server, batch: usize, count: usize) -> Result<super::cost::Cost, BoxError> {
    server.fresh(LIMIT).await?;
    let mut connection = server.options(LIMIT)?.connect().await?;
    connection.execute(sqlx::raw_sql(TABLE)).await?;
    let last = i64::try_from(count)?;
    sqlx::query(FILL).bind(0_i64).bind(last - 1).execute(&mut connection).await?;
    server.settle(LIMIT).await?;
    let (_, cost) = server.measure(delete_all(&mut connection, batch, last)).await?;
    connection.close().await?;
    Ok(cost.each(count))
}

async fn delete_all(connection: &mut PgConnection, batch: usize, last: i64) -> Result<(), BoxError> {
    let mut from = 0;
    while from < last {
        let to = last.min(from + i64::try_from(batch)?);
        let ids: Vec<i64> = (from..to).collect();
        sqlx::query(DELETE).bind(ids).execute(&mut *connection).await?;
        from = to;
    }
    Ok(())
}

async fn through_store(
    server: &mut Server,
    handlers: usize,
    batch: usize,
    count: usize,
) -> Result<super::cost::Cost, BoxError> {
    server.fresh(OURS).await?;
    let names = (0..handlers).map(|n| if n == 0 { HANDLER.to_owned() } else { format!("{HANDLER}-{n}") });
    let names: Vec<HandlerId> = names.map(HandlerId::new).collect::<Result<_, _>>()?;
    let store = PostgresStore::builder(server.url(OURS)).build()?;
    store.setup().await?;
    fill(&store, &names, count).await?;
    server.settle(OURS).await?;
    let (_, cost) = server.measure(drain(&store, &names, batch, count)).await?;
    store.close().await?;
    Ok(cost.each(count))
}

/// Stores `count` events, each for the next of the handlers.
pub(crate) async fn fill(store: &PostgresStore, handlers: &[HandlerId], count: usize) -> Result<(), BoxError> {
    let handlers: Vec<Arc<[HandlerId]>> = handlers.iter().map(|handler| Arc::from([handler.clone()])).collect();
    let now = Timestamp::from_micros(1_700_000_000_000_000);
    for first in (0..count).step_by(1_000) {
        let events = (first..count.min(first + 1_000)).map(|n| event(n, &handlers[n % handlers.len()], now)).collect();
        store.append_alone(&AppendBatch::new(events, now)).await?;
    }
    Ok(())
}

/// Settles `count` deliveries by a session of its own.
pub(crate) async fn drain(
    store: &PostgresStore,
    handlers: &[HandlerId],
    batch: usize,
    count: usize,
) -> Result<(), BoxError> {
    let slots = handlers.iter().map(|handler| HandlerSlots::new(handler.clone(), batch)).collect();
    let mut worker = Worker::open(store, slots).await?;
    worker.drain(batch, count).await?;
    worker.close().await
}

/// A session that takes turns.
pub(crate) struct Worker<'a> {
    store: &'a PostgresStore,
    session: PostgresSession,
    slots: Vec<HandlerSlots>,
    now: Timestamp,
}

impl<'a> Worker<'a> {
    pub(crate) async fn open(store: &'a PostgresStore, slots: Vec<HandlerSlots>) -> Result<Self, BoxError> {
        let now = Timestamp::from_micros(1_700_000_100_000_000);
        let handlers = slots.iter().map(|slots| slots.handler.clone()).collect();
        let request = SessionRequest::new("bench", handlers, Duration::from_secs(30), now);
        Ok(Self { store, session: store.open_session(&request).await?, slots, now })
    }

    /// Takes turns, each settling what the one before claimed, until `count` deliveries are settled.
    pub(crate) async fn drain(&mut self, batch: usize, count: usize) -> Result<(), BoxError> {
        let mut completed: Vec<Completed> = Vec::new();
        let (mut done, mut idle) = (0, 0);
        while done < count {
            let mut request = TurnRequest::new(self.now).completing(&completed);
            // The last turn claims nothing, as that of a dispatcher that stops.
            if done + completed.len() < count {
                request = request.claiming(ClaimRequest::new(&self.slots, batch, 20));
            }
            let turn = self.store.turn(&mut self.session, &request).await?;
            done += completed.len();
            idle = if turn.runs.is_empty() && completed.is_empty() { idle + 1 } else { 0 };
            if idle > 1_000 {
                return Err(format!("the store handed out {done} of {count} deliveries").into());
            }
            completed.clear();
            for run in turn.runs {
                completed
                    .extend(run.deliveries.into_iter().map(|claimed| Completed::new(claimed.lease, RunPart::Last)));
            }
        }
        Ok(())
    }

    pub(crate) async fn close(self) -> Result<(), BoxError> {
        self.store.close_session(self.session, self.now).await?;
        Ok(())
    }
}
