//! Publishing beside the least that must be written: one event row and one delivery row in one statement, by the same driver.

use std::sync::Arc;

use relaybus::store::AppendBatch;
use relaybus::{BoxError, EventStore, HandlerId, Timestamp};
use relaybus_stores::PostgresStore;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor};

use super::cost::{Cost, median};
use super::report::{Goal, Plot, Report};
use super::server::Server;
use crate::events::{HANDLER, PAYLOAD, event};

const OURS: &str = "bench_publish";
const LIMIT: &str = "bench_publish_limit";
/// The least: two rows, a primary key and an index.
const TABLES: &str = "CREATE SEQUENCE numbers; CREATE TABLE ev (id uuid PRIMARY KEY, payload json);
    CREATE TABLE dl (id bigint, lane smallint); CREATE INDEX ON dl (lane, id)";
const ONE: &str = "WITH e AS (INSERT INTO ev VALUES ($1::text::uuid, $2::text::json)) \
    INSERT INTO dl VALUES (nextval('numbers'), $3)";
/// As many as a batch has: their ids and payloads are sent.
const BATCH: &str = "WITH n AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::text[]) AS t(id, payload)), \
    e AS (INSERT INTO ev SELECT id::uuid, payload::json FROM n) \
    INSERT INTO dl SELECT nextval('numbers'), $3 FROM n";

/// One way to publish.
struct Way {
    name: &'static str,
    clients: usize,
    batch: usize,
    calls: usize,
    durable: bool,
    goal: f64,
}

const WAYS: [Way; 3] = [
    Way { name: "one, 2 clients", clients: 2, batch: 1, calls: 4_000, durable: false, goal: 0.75 },
    Way { name: "one, 8 clients, fsync", clients: 8, batch: 1, calls: 400, durable: true, goal: 0.85 },
    Way { name: "100, 1 client", clients: 1, batch: 100, calls: 100, durable: false, goal: 0.9 },
];

/// Interleaved rounds of each way.
pub(crate) async fn run(server: &mut Server, rounds: usize, percent: usize) -> Result<Report, BoxError> {
    let mut report = Report::new("publish");
    let mut bars = Vec::new();
    for way in WAYS {
        server.durable(way.durable).await?;
        let calls = (way.calls * percent / 100).max(1);
        let mut sides = Sides::open(server, way.clients).await?;
        let (mut ours, mut limit, mut pooled) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=rounds {
            let batches = sides.batches(calls, way.batch);
            let count = calls * way.clients * way.batch;
            let (_, cost) = server.measure(sides.publish(&batches)).await?;
            let (_, least) = server.measure(sides.least(&batches)).await?;
            let again = sides.batches(calls, way.batch);
            let (_, through_pool) = server.measure(sides.least_pooled(&again)).await?;
            // The first one prepares statements and opens connections.
            if round > 0 {
                ours.push(cost.each(count));
                limit.push(least.each(count));
                pooled.push(through_pool.each(count));
            }
        }
        sides.close().await?;
        let (ours, limit, pooled) = (median(&ours), median(&limit), median(&pooled));
        report.cost(&format!("publish {}: an event", way.name), ours);
        report.cost(&format!("publish {}: an event, the limit", way.name), limit);
        report.ratios(&format!("publish {}: limit / ours", way.name), limit, ours, Goal::AtLeast(way.goal));
        report.ratios(&format!("publish {}: limit by a pool / ours", way.name), pooled, ours, Goal::None);
        bars.push((format!("{} relaybus", way.name), rate(ours)));
        bars.push((format!("{} limit", way.name), rate(limit)));
        bars.push((format!("{} limit by a pool", way.name), rate(pooled)));
    }
    server.durable(false).await?;
    report.plots.push(Plot::new("publish", "Events published a second", bars));
    server.drop(OURS).await?;
    server.drop(LIMIT).await?;
    Ok(report)
}

/// A second's worth.
pub(crate) fn rate(cost: Cost) -> f64 {
    if cost.wall > 0.0 { 1e6 / cost.wall } else { 0.0 }
}

/// Both sides, with a database each.
struct Sides {
    store: PostgresStore,
    connections: Vec<PgConnection>,
    pool: PgPool,
    handlers: Arc<[HandlerId]>,
    number: usize,
}

/// What each client sends in a round.
type Batches = Vec<Vec<AppendBatch>>;

impl Sides {
    async fn open(server: &mut Server, clients: usize) -> Result<Self, BoxError> {
        server.fresh(OURS).await?;
        server.fresh(LIMIT).await?;
        let store = PostgresStore::builder(server.url(OURS)).max_connections(u32::try_from(clients)?).build()?;
        store.setup().await?;
        let mut connections = Vec::new();
        for _ in 0..clients {
            connections.push(server.options(LIMIT)?.connect().await?);
        }
        if let Some(first) = connections.first_mut() {
            first.execute(sqlx::raw_sql(TABLES)).await?;
        }
        let pool = PgPoolOptions::new()
            .max_connections(u32::try_from(clients)?)
            .test_before_acquire(false)
            .connect_with(server.options(LIMIT)?)
            .await?;
        Ok(Self { store, connections, pool, handlers: Arc::from([HandlerId::from_static(HANDLER)]), number: 0 })
    }

    fn batches(&mut self, calls: usize, batch: usize) -> Batches {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        let mut next = || {
            let events = (0..batch).map(|i| event(self.number + i, &self.handlers, now)).collect();
            self.number += batch;
            AppendBatch::new(events, now)
        };
        // Clients alternate, so that ids rise as they would.
        let mut all: Batches = self.connections.iter().map(|_| Vec::with_capacity(calls)).collect();
        for _ in 0..calls {
            all.iter_mut().for_each(|of_client| of_client.push(next()));
        }
        all
    }

    async fn publish(&self, batches: &Batches) -> Result<(), BoxError> {
        let clients = batches.iter().map(|own| async move {
            for batch in own {
                self.store.append_alone(batch).await?;
            }
            Ok::<_, BoxError>(())
        });
        futures_util::future::try_join_all(clients).await.map(|_| ())
    }

    async fn least(&mut self, batches: &Batches) -> Result<(), BoxError> {
        let clients = self.connections.iter_mut().zip(batches).map(|(connection, own)| async move {
            for batch in own {
                store_least(&mut *connection, batch).await?;
            }
            Ok::<_, BoxError>(())
        });
        futures_util::future::try_join_all(clients).await.map(|_| ())
    }

    /// As [`Sides::least`], by connections of a pool: it asks the server about each one that comes back.
    async fn least_pooled(&self, batches: &Batches) -> Result<(), BoxError> {
        let clients = batches.iter().map(|own| async move {
            for batch in own {
                store_least(&mut *self.pool.acquire().await?, batch).await?;
            }
            Ok::<_, BoxError>(())
        });
        futures_util::future::try_join_all(clients).await.map(|_| ())
    }

    async fn close(self) -> Result<(), BoxError> {
        self.store.close().await?;
        self.pool.close().await;
        for connection in self.connections {
            connection.close().await?;
        }
        Ok(())
    }
}

async fn store_least(connection: &mut PgConnection, batch: &AppendBatch) -> Result<(), sqlx::Error> {
    let ids: Vec<&str> = batch.events.iter().map(|event| event.envelope.id.as_str()).collect();
    let query = if let [id] = ids.as_slice() {
        sqlx::query(ONE).bind(*id).bind(PAYLOAD).bind(7_i16)
    } else {
        sqlx::query(BATCH).bind(&ids).bind(vec![PAYLOAD; ids.len()]).bind(7_i16)
    };
    query.execute(connection).await.map(|_| ())
}
