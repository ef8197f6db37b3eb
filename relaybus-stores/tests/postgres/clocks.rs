//! Processes whose clocks are wrong work together: the bus keeps to the server's.

use std::time::Duration;

use relaybus::{
    Clock, DispatcherOptions, Envelope, EventStore, HandlerContext, RelayBus, Result, State, SystemClock, Timestamp,
    consumer,
};
use relaybus_stores::PostgresStore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::kit::{Schema, builder};

const HOUR: i64 = 3_600_000_000;

/// A clock that is wrong by so many microseconds.
struct Wrong(SystemClock, i64);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.now().as_micros() + self.1)
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
}

#[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
#[event("clocks.ticked.v1")]
struct Ticked {
    number: u32,
}

#[consumer(Ticked, id = "hear")]
async fn hear(event: Envelope<Ticked>, heard: State<UnboundedSender<u32>>, _: &HandlerContext) -> Result {
    let _ = heard.send(event.payload.number);
    Ok(())
}

fn bus(schema: &str, heard: &UnboundedSender<u32>, wrong: i64, works: bool) -> RelayBus<PostgresStore> {
    RelayBus::builder(builder(schema).build().unwrap())
        .source("clocks")
        .clock(Wrong(SystemClock::default(), wrong))
        .handlers(relaybus::handlers![hear])
        .provide(heard.clone())
        .dispatcher(DispatcherOptions::default().enabled(works).poll_interval("200ms"))
        .build()
        .unwrap()
}

#[tokio::test]
async fn the_server_tells_its_time() {
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    let before = Timestamp::from(std::time::SystemTime::now());
    let told = store.server_time().await.unwrap().expect("a clock of its own");
    // The tests' server is on this machine.
    assert!(told >= before && told.since(before) < Duration::from_secs(60), "{told} after {before}");
    store.close().await.unwrap();
}

/// A process that only publishes need not be started, and its events are due now all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_that_was_not_started_keeps_to_the_servers_time_too() {
    let schema = Schema::new();
    let (heard, mut hears) = unbounded_channel();
    let works = bus(&schema.name, &heard, 0, true);
    works.start().await.unwrap();
    let publishes = bus(&schema.name, &heard, HOUR, false);
    publishes.publish_detached(Ticked { number: 7 }).await.unwrap();
    let number = tokio::time::timeout(Duration::from_secs(10), hears.recv()).await.expect("now, not in an hour");
    assert_eq!(number, Some(7));
    publishes.store().close().await.unwrap();
    works.stop().await.unwrap();
}

/// Publishers an hour ahead and an hour behind, workers the same: what is due is handled now, what is delayed comes when it is due,
/// and a worker that is behind does not lose its lease to one that is ahead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_is_no_difference() {
    let schema = Schema::new();
    for (publisher, worker) in [(HOUR, -HOUR), (-HOUR, HOUR), (0, HOUR)] {
        let (heard, mut hears) = unbounded_channel();
        let (publishes, works) = (bus(&schema.name, &heard, publisher, false), bus(&schema.name, &heard, worker, true));
        publishes.start().await.unwrap();
        works.start().await.unwrap();
        for number in 0..5 {
            publishes.publish_detached(Ticked { number }).await.unwrap();
        }
        let began = std::time::Instant::now();
        publishes.publish_detached(Ticked { number: 99 }).delay("1500ms").await.unwrap();
        let mut numbers = Vec::new();
        while numbers.len() < 5 {
            numbers.push(tokio::time::timeout(Duration::from_secs(10), hears.recv()).await.expect("in time").unwrap());
        }
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        let late = tokio::time::timeout(Duration::from_secs(10), hears.recv()).await.expect("when it is due");
        assert_eq!(late, Some(99));
        assert!(began.elapsed() >= Duration::from_millis(1400), "handled before it was due");
        let session = "SELECT extract(epoch FROM lease_expires_at - clock_timestamp())::float8 FROM";
        let left: f64 = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("{session} {}.relaybus_sessions", schema.name)))
            .fetch_one(works.store().pool())
            .await
            .unwrap();
        assert!((0.0..60.0).contains(&left), "the lease ends in {left} s");
        publishes.stop().await.unwrap();
        works.stop().await.unwrap();
    }
}
