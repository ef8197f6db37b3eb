//! From a commit to the start of its handler, at a steady rate, with the options that a bus has by default.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use relaybus::{BoxError, DispatcherOptions, Envelope, Event, EventStore as _, RelayBus, Subscribe};
use relaybus_stores::PostgresStore;
use serde::{Deserialize, Serialize};
use tokio::time::MissedTickBehavior;

use super::report::{Goal, Plot, Report};
use super::server::Server;
use crate::processes::{Started, now_micros, rendezvous_async, share};

const DATABASE: &str = "bench_latency";
/// Tasks that publish, and events of each a second.
const PUBLISHERS: u64 = 4;
const RATE: u64 = 250;

#[derive(Event, Serialize, Deserialize)]
#[event("bench.timed.v1")]
struct Timed {
    number: u64,
}

type Bus = RelayBus<PostgresStore>;
/// When which event was handled, by the clock of the machine.
type Handled = Arc<Mutex<Vec<(u64, u64)>>>;

/// Handlers in this process and in another one, with commits that wait for the disk and without.
pub(crate) async fn run(server: &mut Server, rounds: usize, percent: usize) -> Result<Report, BoxError> {
    let mut report = Report::new("latency");
    let mut bars = Vec::new();
    let seconds = u64::try_from(4 * percent / 100)?.max(1);
    for (durable, elsewhere, goals) in [
        (false, false, [Goal::AtMost(2.0), Goal::AtMost(10.0)]),
        (false, true, [Goal::None, Goal::None]),
        (true, false, [Goal::None, Goal::None]),
    ] {
        let name = match (elsewhere, durable) {
            (false, false) => "the same process",
            (true, _) => "another process",
            (false, true) => "the same process, fsync",
        };
        let mut halves = Vec::new();
        let mut tails = Vec::new();
        for _ in 0..rounds {
            server.durable(durable).await?;
            let waits = waits(server, seconds, elsewhere).await?;
            halves.push(share(&waits, 0.5));
            tails.push(share(&waits, 0.99));
        }
        let middle = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            share(&values, 0.5)
        };
        let (half, tail) = (middle(halves), middle(tails));
        report.figure(&format!("commit to handler in {name}, 1,000 events a second: half"), half, "ms", goals[0]);
        report.figure(&format!("commit to handler in {name}, 1,000 events a second: 99 %"), tail, "ms", goals[1]);
        bars.push((format!("relaybus, {name}: half"), half));
        bars.push((format!("relaybus, {name}: 99 %"), tail));
    }
    server.durable(false).await?;
    server.drop(DATABASE).await?;
    report.plots.push(Plot::new("latency", "Milliseconds from a commit to its handler, 1,000 events a second", bars));
    Ok(report)
}

async fn waits(server: &mut Server, seconds: u64, elsewhere: bool) -> Result<Vec<f64>, BoxError> {
    server.fresh(DATABASE).await?;
    let url = server.url(DATABASE);
    let handled = Handled::default();
    let bus = Arc::new(bus(&url, &handled, !elsewhere).await?);
    let other = if elsewhere { Some(Started::with("pg-listener", &url)?) } else { None };
    if !elsewhere {
        bus.start().await?;
    }
    // The lanes are the listener's and the connections open.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let committed: Arc<Vec<AtomicU64>> =
        Arc::new((0..PUBLISHERS * RATE * seconds).map(|_| AtomicU64::new(0)).collect());
    let publishers: Vec<_> =
        (0..PUBLISHERS).map(|own| tokio::spawn(publish(bus.clone(), own, committed.clone()))).collect();
    for publisher in publishers {
        publisher.await??;
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let came = match other {
        Some(mut other) => {
            other.go()?;
            other.answer()?
        }
        None => {
            bus.stop().await?;
            std::mem::take(&mut *handled.lock().unwrap_or_else(PoisonError::into_inner))
        }
    };
    bus.store().close().await?;
    if came.len() != committed.len() {
        return Err(format!("{} of {} events were handled", came.len(), committed.len()).into());
    }
    let wait = |(number, at): &(u64, u64)| {
        let committed = committed.get(usize::try_from(*number).ok()?)?.load(Ordering::Relaxed);
        Some(at.saturating_sub(committed) as f64 / 1e3)
    };
    let mut waits: Vec<f64> = came.iter().filter_map(wait).collect();
    waits.sort_by(f64::total_cmp);
    Ok(waits)
}

/// One publisher: a transaction each tick, its time taken right before the commit.
async fn publish(bus: Arc<Bus>, own: u64, committed: Arc<Vec<AtomicU64>>) -> Result<(), relaybus::Error> {
    // Each publisher has a phase of its own: the events come one after the other, not in fours.
    let period = Duration::from_micros(1_000_000 / RATE);
    let start = tokio::time::Instant::now() + period / PUBLISHERS as u32 * own as u32;
    let mut ticks = tokio::time::interval_at(start, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for number in (own..committed.len() as u64).step_by(PUBLISHERS as usize) {
        ticks.tick().await;
        let mut transaction = bus.begin().await?;
        bus.publish(transaction.store_transaction(), Timed { number }).await?;
        committed[number as usize].store(now_micros(), Ordering::Relaxed);
        transaction.commit().await?;
    }
    Ok(())
}

async fn bus(url: &str, handled: &Handled, enabled: bool) -> Result<Bus, BoxError> {
    let store = PostgresStore::builder(url).build()?;
    store.setup().await?;
    let notes = handled.clone();
    let handler = Subscribe::to("timed", move |event: Envelope<Timed>, _| {
        notes.lock().unwrap_or_else(PoisonError::into_inner).push((event.payload.number, now_micros()));
        std::future::ready(())
    });
    let options = DispatcherOptions::default().enabled(enabled);
    Ok(RelayBus::builder(store).subscribe(handler).dispatcher(options).build()?)
}

/// The other process: handles events until it gets a line, then answers when it handled which.
pub(crate) async fn listen(url: &str) -> Result<(), BoxError> {
    let handled = Handled::default();
    let bus = bus(url, &handled, true).await?;
    bus.start().await?;
    rendezvous_async().await?;
    bus.stop().await?;
    println!("{}", serde_json::to_string(&*handled.lock().unwrap_or_else(PoisonError::into_inner))?);
    Ok(())
}
