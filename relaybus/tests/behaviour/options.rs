//! Every option of a bus: its default, what it refuses, and that it does what it says.

use std::sync::Arc;
use std::time::Duration;

use relaybus::bus::{
    DEFAULT_COMPLETION_BATCH, DEFAULT_COMPLETION_WINDOW, DEFAULT_CONCURRENCY, DEFAULT_LEASE, DEFAULT_POLL_INTERVAL,
    DEFAULT_RETENTION, DEFAULT_RETENTION_INTERVAL, DEFAULT_SHUTDOWN_TIMEOUT, DEFAULT_SOURCE,
    DEFAULT_TRANSACTION_TIMEOUT, RelayBusBuilder,
};
use relaybus::transport::DEFAULT_ROUTE_TIMEOUT;
use relaybus::{
    DispatcherOptions, Envelope, MemoryStore, RetentionOptions, RetryPolicy, Route, Subscribe, parse_duration,
};
use tokio::sync::Semaphore;

use crate::kit::{
    Broker, Fault, Note, Placed, Probe, Seen, builder, memory, ms, note, pass, refusal, secs, start_time,
};

type Build = fn(RelayBusBuilder<MemoryStore>) -> RelayBusBuilder<MemoryStore>;

fn ignore() -> Subscribe {
    Subscribe::to("ignore", |_: Envelope<Note>, _| async {})
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    assert_eq!(DEFAULT_SOURCE, "relaybus");
    assert_eq!(DEFAULT_TRANSACTION_TIMEOUT, secs(5));
    assert_eq!(DEFAULT_CONCURRENCY, 10);
    assert_eq!(DEFAULT_POLL_INTERVAL, secs(1));
    assert_eq!(DEFAULT_LEASE, secs(30));
    assert_eq!(DEFAULT_SHUTDOWN_TIMEOUT, secs(30));
    assert_eq!(DEFAULT_COMPLETION_WINDOW, ms(2));
    assert_eq!(DEFAULT_COMPLETION_BATCH, 200);
    assert_eq!(DEFAULT_RETENTION, secs(7 * 24 * 3600));
    assert_eq!(DEFAULT_RETENTION_INTERVAL, secs(3600));
    assert_eq!(DEFAULT_ROUTE_TIMEOUT, secs(30));
    let retry = RetryPolicy::default();
    assert_eq!(
        (retry.attempts, retry.initial_delay, retry.factor, retry.max_delay),
        (Some(10), secs(1), 2.0, secs(600))
    );
    let route = RetryPolicy::route_default();
    assert_eq!((route.attempts, route.initial_delay, route.factor, route.max_delay), (None, secs(1), 2.0, secs(300)));
}

#[tokio::test(start_paused = true)]
async fn handlers_and_routes_get_the_defaults() {
    let broker = Broker::new("kafka");
    let bus = memory()
        .subscribe(ignore())
        .transport(broker.shared())
        .route(Route::to("kafka", "orders").event::<Placed>())
        .build()
        .unwrap();
    let listed = bus.handlers();
    assert_eq!(listed[0].id.as_str(), "ignore");
    assert_eq!((listed[0].retry, listed[0].timeout, listed[0].concurrency), (RetryPolicy::default(), None, None));
    assert!(!listed[0].route && !listed[0].transactional);
    assert_eq!(listed[1].id.as_str(), "relaybus.transport:kafka:orders");
    assert_eq!((listed[1].retry, listed[1].timeout), (RetryPolicy::route_default(), Some(secs(30))));
    assert!(listed[1].route);
}

const NOT_A_DURATION: &str =
    "`soon` is not a duration: write a whole number and one of `ms`, `s`, `m`, `h`, `d`, such as `250ms` or `7d`";

#[test]
fn options_of_dispatcher_and_retention_are_refused_with_a_message_that_names_them() {
    let dispatcher = |options: DispatcherOptions| memory_outside().dispatcher(options);
    let retention = |options: RetentionOptions| memory_outside().retention(options);
    let default = DispatcherOptions::default;
    let cases = [
        (dispatcher(default().concurrency(0)), "dispatcher option `concurrency` is 0, expected at least 1".to_owned()),
        (
            dispatcher(default().concurrency(usize::MAX)),
            format!("dispatcher option `concurrency` is {}, expected at most 100000", usize::MAX),
        ),
        (dispatcher(default().batch_size(0)), "dispatcher option `batch_size` is 0, expected at least 1".to_owned()),
        (
            dispatcher(default().completion_batch(0)),
            "dispatcher option `completion_batch` is 0, expected at least 1".to_owned(),
        ),
        (dispatcher(default().run_length(0)), "dispatcher option `run_length` is 0, expected at least 1".to_owned()),
        (
            dispatcher(default().poll_interval("0ms")),
            "dispatcher option `poll_interval` is 0ns, expected at least 1ms".to_owned(),
        ),
        (
            dispatcher(default().lease(Duration::ZERO)),
            "dispatcher option `lease` is 0ns, expected at least 1ms".to_owned(),
        ),
        (
            dispatcher(default().shutdown_timeout("0s")),
            "dispatcher option `shutdown_timeout` is 0ns, expected at least 1ms".to_owned(),
        ),
        (dispatcher(default().lease("soon")), format!("dispatcher option `lease`: {NOT_A_DURATION}")),
        (
            dispatcher(default().completion_window("soon")),
            format!("dispatcher option `completion_window`: {NOT_A_DURATION}"),
        ),
        (
            retention(RetentionOptions::default().completed("soon")),
            format!("retention option `completed`: {NOT_A_DURATION}"),
        ),
        (retention(RetentionOptions::default().dead("soon")), format!("retention option `dead`: {NOT_A_DURATION}")),
        (
            retention(RetentionOptions::default().interval("0s")),
            "retention option `interval` is 0, expected at least 1ms".to_owned(),
        ),
    ];
    for (builder, expected) in cases {
        assert_eq!(refusal(builder), expected);
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let message = refusal(
        memory_outside()
            .source("")
            .handler_timeout("soon")
            .dispatcher(DispatcherOptions::default().concurrency(0).lease("soon").run_length(0))
            .retention(RetentionOptions::default().dead("never").interval("0s"))
            .retry(RetryPolicy { attempts: Some(0), ..RetryPolicy::default() })
            .subscription("kafka", ["orders"])
            .subscription("kafka", [""; 0])
            .subscribe(ignore())
            .subscribe(ignore()),
    );
    let expected = [
        "`source` has 0 bytes",
        "option `handler_timeout`: `soon` is not a duration",
        "dispatcher option `lease`: `soon` is not a duration",
        "dispatcher option `concurrency` is 0",
        "dispatcher option `run_length` is 0",
        "retention option `dead`: `never` is not a duration",
        "retention option `interval` is 0",
        "a subscription needs the transport `kafka`",
        "a subscription needs the transport `kafka`",
        "a subscription to `kafka` has no destinations",
        "retry of the bus: `attempts` is 0",
        "handler id `ignore` is used twice",
    ];
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.first(), Some(&"this bus cannot start:"), "{message}");
    for expected in expected {
        assert!(lines.iter().any(|line| line.starts_with(&format!("  - {expected}"))), "no `{expected}` in {message}");
    }
    let retries_of_handlers = lines.iter().filter(|line| line.contains("retry of handler")).count();
    assert!(lines.len() <= 1 + expected.len() + retries_of_handlers, "{message}");
}

#[test]
fn options_of_the_bus_are_refused_with_a_message_that_names_them() {
    let cases = [
        (memory_outside().transaction_timeout("soon"), format!("option `transaction_timeout`: {NOT_A_DURATION}")),
        (memory_outside().handler_timeout("soon"), format!("option `handler_timeout`: {NOT_A_DURATION}")),
        (
            memory_outside().handler_timeout("0s"),
            "`handler_timeout` is 0, expected at least 1ms, or leave it out for none".to_owned(),
        ),
        (memory_outside().backlog_interval("soon"), format!("option `backlog_interval`: {NOT_A_DURATION}")),
        (
            memory_outside().backlog_interval("0s"),
            "`backlog_interval` is 0, expected at least 1ms, or leave it out for never".to_owned(),
        ),
        (memory_outside().source(""), "`source` has 0 bytes, expected 1 to 255 without NUL".to_owned()),
        (memory_outside().source("s".repeat(256)), "`source` has 256 bytes, expected 1 to 255 without NUL".to_owned()),
        (memory_outside().source("a\0b"), "`source` has 3 bytes, expected 1 to 255 without NUL".to_owned()),
        (
            memory_outside().retry(RetryPolicy { attempts: Some(0), ..RetryPolicy::default() }),
            "retry of the bus: `attempts` is 0, expected at least 1".to_owned(),
        ),
        (
            memory_outside().retry(RetryPolicy { factor: f64::NAN, ..RetryPolicy::default() }),
            "retry of the bus: `factor` is NaN, expected a finite number of at least 1".to_owned(),
        ),
        (
            memory_outside().retry(RetryPolicy { max_delay: ms(1), ..RetryPolicy::default() }),
            "retry of the bus: `max_delay` (1ms) is below `initial_delay` (1s), expected at least as much".to_owned(),
        ),
        (
            memory_outside().subscription("kafka", ["orders"]),
            "a subscription needs the transport `kafka`, which the bus does not have: add it with `.transport(..)`"
                .to_owned(),
        ),
        (
            memory_outside().transport(Broker::new("kafka").shared()).subscription("kafka", [""; 0]),
            "a subscription to `kafka` has no destinations: name at least one".to_owned(),
        ),
        (
            memory_outside().transport(Broker::new("kafka").shared()).transport(Broker::new("kafka").shared()),
            "two transports are called `kafka`: give one another name".to_owned(),
        ),
        (memory_outside().provide(1_u8).provide(2_u8), "a value of type `u8` was provided twice: keep one".to_owned()),
    ];
    for (builder, expected) in cases {
        assert_eq!(refusal(builder), expected);
    }
}

/// A builder outside a runtime, for checks that need no time.
fn memory_outside() -> RelayBusBuilder<MemoryStore> {
    relaybus::RelayBus::builder(MemoryStore::new())
}

#[test]
fn durations_too_long_to_calculate_with_are_refused() {
    let long: [(&str, Build); 4] = [
        ("poll_interval", |b| b.dispatcher(DispatcherOptions::default().poll_interval(Duration::MAX))),
        ("lease", |b| b.dispatcher(DispatcherOptions::default().lease(Duration::MAX))),
        ("shutdown_timeout", |b| b.dispatcher(DispatcherOptions::default().shutdown_timeout(Duration::MAX))),
        ("completion_window", |b| b.dispatcher(DispatcherOptions::default().completion_window(Duration::MAX))),
    ];
    for (option, build) in long {
        let message = refusal(build(memory_outside()));
        assert!(message.starts_with(&format!("dispatcher option `{option}` is ")), "{message}");
        assert!(message.ends_with("expected at most 365d"), "{message}");
    }
}

#[test]
fn durations_are_read_from_text() {
    for (text, expected) in
        [("250ms", ms(250)), ("30s", secs(30)), ("5m", secs(300)), ("1h", secs(3600)), ("7d", secs(604_800))]
    {
        assert_eq!(parse_duration(text).unwrap(), expected);
    }
    for text in ["", "5", "1.5s", "-1s", "1 s", "1w", "99999999999999999999d"] {
        let error = parse_duration(text).unwrap_err();
        assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
        assert!(error.to_string().starts_with(&format!("`{text}` is not a duration")), "{error}");
    }
}

/// The limits of the first claim of a bus with 1000 notes to handle.
async fn first_claim(options: DispatcherOptions) -> Option<usize> {
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).subscribe(ignore()).dispatcher(options).build().unwrap();
    bus.start().await.unwrap();
    store.takes().until(1).await;
    bus.stop().await.unwrap();
    store.takes().all()[0].claim
}

#[tokio::test(start_paused = true)]
async fn a_claim_asks_for_a_batch_of_at_most_the_free_slots() {
    assert_eq!(first_claim(DispatcherOptions::default()).await, Some(10));
    assert_eq!(first_claim(DispatcherOptions::default().concurrency(4)).await, Some(4));
    assert_eq!(first_claim(DispatcherOptions::default().batch_size(3)).await, Some(3));
    assert_eq!(first_claim(DispatcherOptions::default().concurrency(50).batch_size(200)).await, Some(50));
}

#[tokio::test(start_paused = true)]
async fn an_idle_bus_asks_once_a_poll_interval() {
    let store = Probe::new(MemoryStore::new());
    let options = DispatcherOptions::default().poll_interval("2s");
    let bus = builder(store.clone()).subscribe(ignore()).dispatcher(options).build().unwrap();
    bus.start().await.unwrap();
    pass(ms(60_500)).await;
    let takes = store.takes().count();
    assert!((31..=38).contains(&takes), "31 claims, and a renewal each 10 s at most: {takes}");
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_bus_without_a_dispatcher_claims_nothing() {
    let store = Probe::new(MemoryStore::new());
    let options = DispatcherOptions::default().enabled(false);
    let bus = builder(store.clone()).subscribe(ignore()).dispatcher(options).build().unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    bus.wake();
    pass(secs(60)).await;
    let calls = store.calls().all();
    assert!(!calls.iter().any(|call| call == "open_session" || call == "watch"), "{calls:?}");
    assert_eq!(store.takes().count(), 0);
    assert_eq!(bus.statistics().await.unwrap().pending, 1);
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_store_is_set_up_or_only_looked_at() {
    for (setup, expected) in [(true, "setup"), (false, "verify")] {
        let store = Probe::new(MemoryStore::new());
        let bus = builder(store.clone()).setup_store(setup).build().unwrap();
        assert_eq!(store.calls().count(), 0, "building does no I/O");
        bus.start().await.unwrap();
        assert_eq!(store.calls().all()[0], expected);
        bus.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_every_third_while_a_handler_runs() {
    let store = Probe::new(MemoryStore::new());
    let (done, ran) = (Seen::<String>::default(), Seen::<String>::default());
    let (gate, finished) = (Arc::new(Semaphore::new(0)), done.clone());
    let (held, begun) = (gate.clone(), ran.clone());
    let slow = Subscribe::to("slow", move |_: Envelope<Note>, _| {
        let (held, begun, finished) = (held.clone(), begun.clone(), finished.clone());
        async move {
            begun.push("began");
            held.acquire().await.unwrap().forget();
            finished.push("ended");
        }
    });
    let options = DispatcherOptions::default().lease("9s");
    let bus = builder(store.clone()).subscribe(slow).dispatcher(options).build().unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    ran.until(1).await;
    pass(secs(100)).await;
    let renewals: Vec<u128> =
        store.takes().all().iter().filter(|take| take.renew).map(|take| take.at.as_millis()).collect();
    assert!(renewals.len() >= 30, "{renewals:?}");
    assert!(renewals.windows(2).all(|pair| pair[1] - pair[0] <= 3100), "{renewals:?}");
    gate.add_permits(1);
    done.until(1).await;
    bus.stop().await.unwrap();
    assert_eq!((ran.count(), bus.statistics().await.unwrap().pending), (1, 0), "it ran once and is completed");
}

/// The sizes of the completing calls for 12 notes that are handled at once.
async fn completions(options: DispatcherOptions) -> Vec<usize> {
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).subscribe(ignore()).dispatcher(options.concurrency(12)).build().unwrap();
    let notes: Vec<Note> = (0..12).map(|number| note(&number.to_string())).collect();
    bus.publish_all_detached(notes).await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 12);
    store.takes().all().iter().map(|take| take.completed).filter(|&completed| completed > 0).collect()
}

#[tokio::test(start_paused = true)]
async fn completions_are_grouped_within_the_window_and_up_to_the_batch() {
    assert_eq!(completions(DispatcherOptions::default()).await, [12]);
    assert_eq!(completions(DispatcherOptions::default().completion_batch(5)).await, [5, 5, 2]);
    assert_eq!(completions(DispatcherOptions::default().completion_window("0ms")).await, [1; 12]);
}

#[tokio::test(start_paused = true)]
async fn the_store_is_cleaned_up_on_schedule() {
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).build().unwrap();
    bus.start().await.unwrap();
    pass(secs(3599)).await;
    assert_eq!(store.purges().count(), 0);
    pass(secs(2 * 3600)).await;
    let purges = store.purges().all();
    assert_eq!(purges.len(), 2, "once an hour");
    assert_eq!(purges[0].completed_before, Some(start_time().after(secs(3600)).before(secs(604_800))));
    assert_eq!(purges[0].dead_before, None, "dead letters are kept by default");
    bus.stop().await.unwrap();
    pass(secs(7200)).await;
    assert_eq!(store.purges().count(), 2, "a stopped bus cleans up nothing");
}

#[tokio::test(start_paused = true)]
async fn retention_is_as_set_or_for_ever() {
    let store = Probe::new(MemoryStore::new());
    let retention = RetentionOptions::default().completed("1d").dead("2d").interval("10m");
    let bus = builder(store.clone()).retention(retention).build().unwrap();
    bus.start().await.unwrap();
    store.purges().until(1).await;
    let at = start_time().after(secs(600));
    let purge = store.purges().all()[0];
    assert_eq!(
        (purge.completed_before, purge.dead_before),
        (Some(at.before(secs(86_400))), Some(at.before(secs(172_800))))
    );
    bus.stop().await.unwrap();

    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).retention(RetentionOptions::default().keep_completed()).build().unwrap();
    bus.start().await.unwrap();
    pass(secs(100 * 86_400)).await;
    assert_eq!(store.purges().count(), 0, "nothing is ever deleted");
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failing_clean_up_is_tried_again_at_its_next_time() {
    let store = Probe::new(MemoryStore::new());
    store.once("purge", Fault::Fail);
    let bus = builder(store.clone()).build().unwrap();
    bus.start().await.unwrap();
    pass(secs(2 * 3600 + 1)).await;
    assert_eq!(store.purges().count(), 2);
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn statistics_are_read_only_when_an_interval_is_set() {
    for (interval, expected) in [(None, 0), (Some("30s"), 3)] {
        let store = Probe::new(MemoryStore::new());
        let mut builder = builder(store.clone());
        if let Some(interval) = interval {
            builder = builder.backlog_interval(interval);
        }
        let bus = builder.build().unwrap();
        bus.start().await.unwrap();
        pass(secs(100)).await;
        let readings = store.calls().all().iter().filter(|call| *call == "statistics").count();
        assert_eq!(readings, expected);
        bus.stop().await.unwrap();
    }
}
