//! The whole bus: publishing, then running handlers that do nothing until everything is settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use relaybus::registry::Order;
use relaybus::{BoxError, DispatcherOptions, Envelope, Event, EventBatch, RelayBus, Subscribe};
use relaybus_stores::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::sync::Notify;

use super::cost::Cost;
use super::server::Server;

/// What an event says, as long as on the other sides of a comparison.
const NOTE: &str = "a hundred and sixty bytes of payload, as the other sides of the comparison have it, give or take a few that name the fields of this text";
/// Events that wait at most while events are published and handled at once.
const BACKLOG: usize = 20_000;
/// How long a bus may take for everything before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Event, Serialize, Deserialize)]
#[event("bench.noop.v1", key = key)]
pub(crate) struct Noop {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) key: Option<String>,
    pub(crate) number: u64,
    pub(crate) note: String,
}

/// What is drained, and how.
#[derive(Clone, Debug)]
pub(crate) struct Drain {
    pub(crate) events: usize,
    pub(crate) keys: Option<usize>,
    pub(crate) order: Order,
    pub(crate) options: DispatcherOptions,
    /// Events that one call publishes.
    pub(crate) publish: usize,
    /// They are published while others are handled.
    pub(crate) works: bool,
}

impl Drain {
    pub(crate) fn new(events: usize, options: DispatcherOptions) -> Self {
        Self { events, keys: None, order: Order::Strict, options, publish: 1_000, works: false }
    }

    pub(crate) fn keys(mut self, keys: usize) -> Self {
        self.keys = Some(keys);
        self
    }

    pub(crate) fn replay(mut self) -> Self {
        self.order = Order::Replay;
        self
    }

    /// Published by so many a call while others are handled.
    pub(crate) fn at_once(mut self, publish: usize) -> Self {
        self.works = true;
        self.publish = publish;
        self
    }

    fn event(&self, number: usize) -> Noop {
        let key = self.keys.map(|keys| format!("key-{}", number % keys));
        Noop { key, number: number as u64, note: NOTE.to_owned() }
    }

    /// Publishes everything, each batch once fewer than the backlog wait.
    async fn publish_all(&self, bus: &RelayBus<PostgresStore>, done: &Done) -> Result<(), BoxError> {
        for first in (0..self.events).step_by(self.publish) {
            while self.works && first >= done.count.load(Ordering::Relaxed) + BACKLOG {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let last = self.events.min(first + self.publish);
            let batch: EventBatch = (first..last).map(|number| self.event(number)).collect();
            bus.publish_all_detached(batch).await?;
        }
        Ok(())
    }

    /// What it costs, in a database of its own.
    pub(crate) async fn measure(&self, server: &mut Server, database: &str) -> Result<Cost, BoxError> {
        server.fresh(database).await?;
        let done = Arc::new(Done::default());
        let bus = self.bus(server, database, &done).await?;
        if !self.works {
            self.publish_all(&bus, &done).await?;
        }
        server.settle(database).await?;
        let (_, cost) = server.measure(self.run(&bus, &done)).await?;
        let mut watch = server.options(database)?.connect().await?;
        let left: i64 =
            sqlx::query("SELECT count(*) FROM relaybus_deliveries").fetch_one(&mut watch).await?.try_get(0)?;
        watch.close().await?;
        relaybus::EventStore::close(bus.store()).await?;
        if left > 0 {
            return Err(format!("{left} deliveries are left of {self:?}").into());
        }
        Ok(cost.each(self.events))
    }

    async fn bus(
        &self,
        server: &Server,
        database: &str,
        done: &Arc<Done>,
    ) -> Result<RelayBus<PostgresStore>, BoxError> {
        let store = PostgresStore::builder(server.url(database)).build()?;
        relaybus::EventStore::setup(&store).await?;
        let (seen, events) = (done.clone(), self.events);
        let handler = Subscribe::to("noop", move |_: Envelope<Noop>, _| {
            if seen.count.fetch_add(1, Ordering::Relaxed) + 1 == events {
                seen.all.notify_one();
            }
            std::future::ready(())
        });
        let builder = RelayBus::builder(store).subscribe(handler.order(self.order));
        Ok(builder.dispatcher(self.options.clone()).build()?)
    }

    async fn run(&self, bus: &RelayBus<PostgresStore>, done: &Done) -> Result<(), BoxError> {
        bus.start().await?;
        if self.works {
            self.publish_all(bus, done).await?;
        }
        tokio::time::timeout(PATIENCE, done.all.notified()).await.map_err(|_| format!("not drained: {self:?}"))?;
        // It returns when all completions are written.
        bus.stop().await?;
        Ok(())
    }
}

/// Events that were handled.
#[derive(Debug, Default)]
struct Done {
    count: AtomicUsize,
    all: Notify,
}
