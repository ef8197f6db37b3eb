//! Several processes that drain one queue, beside one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use relaybus::store::AppendBatch;
use relaybus::{BoxError, Envelope, Event, EventStore as _, HandlerId, RelayBus, Subscribe, Timestamp};
use relaybus_stores::PostgresStore;
use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions, Connection, Row};

use super::cost::{Cost, median};
use super::keys::slots;
use super::publish::rate;
use super::report::{Goal, Plot, Report};
use super::server::Server;
use crate::events::event;
use crate::processes::{Started, rendezvous_async};

const DATABASE: &str = "bench_workers";
const HANDLER: &str = "noop";
/// Slots of each process.
const SLOTS: usize = 100;
/// How long the processes get to share the lanes before there is work.
const SHARING: Duration = Duration::from_secs(4);

/// The event that the benchmarks of stores write.
#[derive(Event, serde::Serialize, serde::Deserialize)]
#[event("order.placed.v1")]
struct Placed {
    #[serde(rename = "orderId")]
    order: String,
}

/// What a process answers.
#[derive(serde::Serialize, serde::Deserialize)]
struct Worked {
    deliveries: u64,
    cpu_micros: f64,
}

/// One and four processes, interleaved.
pub(crate) async fn run(server: &mut Server, rounds: usize, percent: usize) -> Result<Report, BoxError> {
    let mut report = Report::new("workers");
    let count = (60_000 * percent / 100).next_multiple_of(1_000);
    let (mut one, mut four) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        one.push(drained(server, 1, count).await?);
        four.push(drained(server, 4, count).await?);
    }
    let (one, four) = (median(&one), median(&four));
    report.cost("one process drains: a delivery", one);
    report.cost("four processes drain: a delivery", four);
    let by = |of: fn(Cost) -> f64| of(one) / of(four);
    report.figure("four processes / one: rate", by(|cost| cost.wall), "ratio", Goal::AtLeast(1.0));
    let spent = four.server / one.server;
    report.figure("four processes / one: the server's time a delivery", spent, "ratio", Goal::AtMost(1.05));
    let bars = vec![("relaybus, 1 process".to_owned(), rate(one)), ("relaybus, 4 processes".to_owned(), rate(four))];
    report.plots.push(Plot::new("workers", "Deliveries a second, processes with 100 slots each, two cores", bars));
    server.drop(DATABASE).await?;
    Ok(report)
}

async fn drained(server: &mut Server, processes: usize, count: usize) -> Result<Cost, BoxError> {
    server.fresh(DATABASE).await?;
    let url = server.url(DATABASE);
    let store = PostgresStore::builder(&url).build()?;
    store.setup().await?;
    let mut workers: Vec<Started> =
        (0..processes).map(|_| Started::with("pg-worker", &url)).collect::<Result<_, _>>()?;
    tokio::time::sleep(SHARING).await;
    // Everything becomes due at one moment, when all processes know their lanes.
    let due = Timestamp::from_micros(i64::try_from(crate::processes::now_micros())?).after(Duration::from_secs(6));
    fill(&store, count, due).await?;
    server.settle(DATABASE).await?;
    let mut watch = server.options(DATABASE)?.connect().await?;
    let left = i64::try_from(crate::processes::now_micros())?;
    let wait = due.as_micros() - left;
    tokio::time::sleep(Duration::from_micros(u64::try_from(wait).map_err(|_| "filling took too long")?)).await;
    // One more that is due wakes everybody.
    let (_, cost) = server
        .measure(async {
            fill(&store, 1, due).await?;
            empty(&mut watch).await
        })
        .await?;
    let mut client = 0.0;
    let mut deliveries = 0;
    for mut worker in workers.drain(..) {
        worker.go()?;
        let worked: Worked = worker.answer()?;
        client += worked.cpu_micros;
        deliveries += worked.deliveries;
    }
    store.close().await?;
    watch.close().await?;
    if deliveries < count as u64 {
        return Err(format!("{deliveries} of {count} deliveries were handled").into());
    }
    Ok(Cost { client, ..cost }.each(count))
}

async fn fill(store: &PostgresStore, count: usize, due: Timestamp) -> Result<(), BoxError> {
    let handlers: Arc<[HandlerId]> = Arc::from([HandlerId::from_static(HANDLER)]);
    let now = Timestamp::from_micros(i64::try_from(crate::processes::now_micros())?);
    for first in (0..count).step_by(1_000) {
        let events = (first..count.min(first + 1_000)).map(|n| {
            let number = if count == 1 { usize::MAX >> 20 } else { n };
            let mut event = event(number, &handlers, now);
            event.due_at = if count == 1 { now } else { due };
            event
        });
        store.append_alone(&AppendBatch::new(events.collect(), now)).await?;
    }
    Ok(())
}

async fn empty(watch: &mut PgConnection) -> Result<(), BoxError> {
    let text = "SELECT EXISTS (SELECT 1 FROM relaybus_deliveries WHERE handler IS NOT NULL)";
    for _ in 0..6_000 {
        if !sqlx::query(text).fetch_one(&mut *watch).await?.try_get::<bool, _>(0)? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("the queue was not drained".into())
}

/// One of the processes.
pub(crate) async fn work(url: &str) -> Result<(), BoxError> {
    let handled = Arc::new(AtomicU64::new(0));
    let seen = handled.clone();
    let store = PostgresStore::builder(url).build()?;
    let handler = Subscribe::to(HANDLER, move |_: Envelope<Placed>, _| {
        seen.fetch_add(1, Ordering::Relaxed);
        std::future::ready(())
    });
    let bus = RelayBus::builder(store).subscribe(handler).dispatcher(slots(SLOTS)).build()?;
    bus.start().await?;
    let watch = crate::effort::Watch::start();
    rendezvous_async().await?;
    let worked = Worked { deliveries: handled.load(Ordering::Relaxed), cpu_micros: watch.stop().cpu };
    bus.stop().await?;
    bus.store().close().await?;
    println!("{}", serde_json::to_string(&worked)?);
    Ok(())
}
