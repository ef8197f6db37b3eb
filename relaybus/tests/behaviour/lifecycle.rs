//! Starting, stopping, and what a stop does with handlers that do not end.

use std::sync::{Arc, Mutex};

use relaybus::store::DeliveryStatus;
use relaybus::{
    DispatcherOptions, Envelope, Error, HandlerContext, HealthStatus, MemoryStore, RelayBus, Route, Subscribe,
};
use tokio_util::sync::CancellationToken;

use crate::kit::{
    Broker, Fault, Logged, Note, Placed, Probe, Seen, builder, deliveries, memory, ms, note, pass, placed, secs,
};

fn silent() -> Subscribe {
    Subscribe::to("notes", |_: Envelope<Note>, _| async {})
}

/// A handler that says when it begins and never ends.
fn endless(seen: &Seen) -> Subscribe {
    let seen = seen.clone();
    Subscribe::to("notes", move |event: Envelope<Note>, context: HandlerContext| {
        seen.push(format!("{} {}", event.payload.text, context.attempt()));
        std::future::pending::<()>()
    })
}

fn lifecycle_error(result: Result<impl Sized, Error>) -> String {
    let error = result.map(drop).unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_LIFECYCLE");
    error.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_bus_starts_once_and_stops_as_often_as_you_like() {
    let bus = memory().subscribe(silent()).build().unwrap();
    bus.start().await.unwrap();
    assert_eq!(lifecycle_error(bus.start().await), "the bus cannot be started: it is running, start it once");
    let first = bus.stop().await.unwrap();
    assert!(first.graceful && first.abandoned_deliveries == 0);
    assert_eq!(bus.stop().await.unwrap(), first);
    assert_eq!(lifecycle_error(bus.start().await), "the bus cannot be started: it is stopped, build another one");
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_never_started_stops_and_closes_what_it_was_given() {
    let (store, broker) = (Probe::new(MemoryStore::new()), Broker::new("kafka"));
    let bus = builder(store.clone()).transport(broker.shared()).build().unwrap();
    assert!(bus.stop().await.unwrap().graceful);
    assert_eq!((store.calls().all(), broker.closed()), (vec!["close".to_owned()], (1, 0)));
}

#[tokio::test(start_paused = true)]
async fn stops_that_meet_all_wait_for_the_one_that_works() {
    let seen = Seen::default();
    let bus = memory().subscribe(endless(&seen)).build().unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    seen.until(1).await;
    let (first, second, third) = tokio::join!(bus.stop_within(secs(10)), bus.stop(), async {
        pass(secs(5)).await;
        bus.stop().await
    });
    let first = first.unwrap();
    assert_eq!((second.unwrap(), third.unwrap()), (first, first));
    assert!(first.duration >= secs(8));
}

#[tokio::test(start_paused = true)]
async fn a_bus_cannot_be_stopped_while_it_starts() {
    let store = Probe::new(MemoryStore::new());
    store.always("setup", Fault::Hang);
    let bus = builder(store.clone()).build().unwrap();
    let starting = bus.start();
    tokio::select! {
        _ = starting => unreachable!(),
        result = async { pass(ms(1)).await; bus.stop().await } => {
            assert_eq!(lifecycle_error(result), "the bus cannot be stopped: it is starting, wait for that to end");
        }
    }
    store.heal("setup");
    bus.start().await.expect("a start that was dropped leaves the bus idle");
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_goes_on_when_nobody_waits_for_it() {
    let store = Probe::new(MemoryStore::new());
    let seen = Seen::default();
    let bus = builder(store.clone()).subscribe(endless(&seen)).build().unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    seen.until(1).await;
    tokio::select! {
        _ = bus.stop_within(secs(10)) => unreachable!(),
        () = pass(secs(1)) => {}
    }
    pass(secs(20)).await;
    assert!(store.calls().all().contains(&"close".to_owned()));
    assert!(bus.stop().await.unwrap().graceful);
}

#[test]
fn a_start_without_a_runtime_or_its_timers_says_what_is_missing() {
    let bus = memory().subscribe(silent()).build().unwrap();
    let without = futures_util::future::FutureExt::now_or_never(bus.start()).expect("nothing to wait for");
    let expected = "the bus starts inside a tokio runtime only: start it under `#[tokio::main]` or `Runtime::block_on`";
    assert_eq!(lifecycle_error(without), expected);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let expected = "the tokio runtime has no timers: build it with `enable_time()` or `enable_all()`";
    assert_eq!(lifecycle_error(runtime.block_on(bus.start())), expected);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        bus.start().await.unwrap();
        bus.stop().await.unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn a_start_that_failed_can_be_repeated() {
    let (store, kafka, rabbit) = (Probe::new(MemoryStore::new()), Broker::new("kafka"), Broker::new("rabbitmq"));
    store.once("setup", Fault::Fail);
    store.once("backlog", Fault::Fail);
    rabbit.refuse_subscriptions(2);
    let bus = builder(store.clone())
        .transport(kafka.shared())
        .transport(rabbit.shared())
        .subscription("kafka", ["a"])
        .subscription("rabbitmq", ["b"])
        .subscription("kafka", ["c"])
        .subscribe(silent())
        .build()
        .unwrap();
    for expected in
        ["the store is away", "the store is away", "the broker is not there yet", "the broker is not there yet"]
    {
        assert_eq!(bus.start().await.unwrap_err().to_string(), expected);
        assert!(!bus.is_ready());
    }
    bus.start().await.unwrap();
    assert!(bus.is_ready());
    assert_eq!(kafka.subscriptions(), [["a"], ["c"]]);
    assert_eq!(rabbit.subscriptions(), [["b"]]);
    bus.stop().await.unwrap();
    assert_eq!((kafka.closed(), rabbit.closed()), ((1, 0), (1, 0)));
}

#[tokio::test(start_paused = true)]
async fn what_runs_may_end_within_four_fifths_of_the_stop() {
    let seen = Seen::<String>::default();
    let keep = seen.clone();
    let bus = memory()
        .dispatcher(DispatcherOptions::default().shutdown_timeout("10s"))
        .subscribe(Subscribe::to("notes", move |event: Envelope<Note>, _| {
            let keep = keep.clone();
            async move {
                keep.push("began");
                pass(event.payload.text.parse::<u64>().map(ms).unwrap()).await;
                keep.push("ended");
            }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("7500")).await.unwrap();
    seen.until(1).await;
    let result = bus.stop().await.unwrap();
    assert!(result.graceful && result.duration < ms(7600), "{result:?}");
    assert_eq!(seen.all(), ["began", "ended"]);
    assert!(deliveries(&bus).await.is_empty(), "and its completion is written");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_end_is_cancelled_and_released_without_an_attempt() {
    let store = MemoryStore::new();
    let (seen, tokens) = (Seen::<String>::default(), Arc::new(Mutex::new(Vec::<CancellationToken>::new())));
    let (keep, kept) = (seen.clone(), tokens.clone());
    let bus = builder(store.clone())
        .subscribe(Subscribe::to("notes", move |_: Envelope<Note>, context: HandlerContext| {
            keep.push("began");
            kept.lock().unwrap().push(context.cancellation());
            std::future::pending::<()>()
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    seen.until(1).await;
    let result = bus.stop_within(secs(10)).await.unwrap();
    assert_eq!((result.graceful, result.abandoned_deliveries), (true, 0));
    assert!((secs(8)..secs(9)).contains(&result.duration), "{result:?}");
    assert!(tokens.lock().unwrap()[0].is_cancelled());
    let record = deliveries(&bus).await.remove(0);
    assert_eq!((record.status, record.attempts), (DeliveryStatus::Pending, 0));
    let next = builder(store).subscribe(silent()).build().unwrap();
    assert_eq!(next.drain().await.unwrap(), 1, "another process runs it at once");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_because_it_was_cancelled_is_not_charged() {
    let seen = Seen::<String>::default();
    let keep = seen.clone();
    let bus = memory()
        .subscribe(Subscribe::to("notes", move |_: Envelope<Note>, context: HandlerContext| {
            keep.push("began");
            let token = context.cancellation();
            async move {
                token.cancelled().await;
                Err::<(), _>(Error::non_retryable("cancelled"))
            }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    seen.until(1).await;
    assert!(bus.stop_within(secs(10)).await.unwrap().graceful);
    let record = deliveries(&bus).await.remove(0);
    assert_eq!((record.status, record.attempts, record.last_error), (DeliveryStatus::Pending, 0, None));
}

#[tokio::test(start_paused = true)]
async fn nothing_new_starts_while_a_bus_stops() {
    let seen = Seen::<String>::default();
    let keep = seen.clone();
    let bus = memory()
        .dispatcher(DispatcherOptions::default().concurrency(1))
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, _| {
            let keep = keep.clone();
            async move {
                keep.push(event.payload.number.to_string());
                pass(secs(2)).await;
            }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    let events: Vec<Placed> = (1..=9).map(|number| placed("k", number)).collect();
    bus.publish_all_detached(events).await.unwrap();
    seen.until(1).await;
    let result = bus.stop().await.unwrap();
    assert!(result.graceful && result.duration < secs(3), "{result:?}");
    assert_eq!(seen.all(), ["1"]);
    let records = deliveries(&bus).await;
    assert_eq!(records.len(), 8);
    assert!(records.iter().all(|r| r.status == DeliveryStatus::Pending && r.attempts == 0), "{records:?}");
}

/// The result of a stop within 10 s while the store never answers this call, after `numbers` of one key were handled.
async fn stop_without_answers(call: &'static str, count: u32) -> (relaybus::StopResult, Vec<String>, Probe) {
    let store = Probe::new(MemoryStore::new());
    let seen = Seen::<String>::default();
    let keep = seen.clone();
    let bus = builder(store.clone())
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, _| {
            keep.push(event.payload.number.to_string());
            async move { if event.payload.number == 0 { Err("failed") } else { Ok(()) } }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    store.takes().until(1).await;
    store.always(call, Fault::Hang);
    let first = u32::from(call != "settle");
    for number in 0..count {
        bus.publish_detached(placed(&format!("k{number}"), first + number)).await.unwrap();
    }
    if count > 0 {
        seen.until(1).await;
    }
    pass(ms(100)).await;
    let log = Logged::capture();
    let result = bus.stop_within(secs(10)).await.unwrap();
    (result, log.with("shutdown deadline passed"), store)
}

#[tokio::test(start_paused = true)]
async fn the_stop_ends_at_its_deadline_whatever_hangs() {
    for (call, count, abandoned) in [("complete", 1, 1), ("settle", 1, 1), ("close_session", 0, 0), ("close", 0, 0)] {
        let (result, warnings, store) = stop_without_answers(call, count).await;
        assert_eq!((result.graceful, result.abandoned_deliveries), (false, abandoned), "{call}");
        assert!((secs(10)..ms(10_100)).contains(&result.duration), "{call}: {result:?}");
        assert_eq!(
            warnings,
            [format!("shutdown deadline passed, forced close abandoned={abandoned} timeout_ms=10000")]
        );
        assert!(store.calls().all().contains(&"force_close".to_owned()), "{call}");
    }
}

#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "tests drive time themselves")]
async fn handlers_are_cancelled_at_four_fifths_even_while_the_store_does_not_answer() {
    let store = Probe::new(MemoryStore::new());
    let seen = Seen::<u32>::default();
    let cancelled = Seen::<tokio::time::Instant>::default();
    let (keep, heard) = (seen.clone(), cancelled.clone());
    let bus = builder(store.clone())
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, context| {
            keep.push(event.payload.number);
            let heard = heard.clone();
            async move {
                if event.payload.number == 1 {
                    let token = context.cancellation();
                    tokio::spawn(async move {
                        token.cancelled().await;
                        heard.push(tokio::time::Instant::now());
                    });
                    std::future::pending::<()>().await;
                }
            }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    store.takes().until(1).await;
    store.always("complete", Fault::Hang);
    bus.publish_detached(placed("b", 1)).await.unwrap();
    seen.until(1).await;
    bus.publish_detached(placed("a", 2)).await.unwrap();
    seen.until(2).await;
    pass(ms(100)).await;
    let began = tokio::time::Instant::now();
    let result = bus.stop_within(secs(10)).await.unwrap();
    assert!(!result.graceful);
    let after = cancelled.all().first().map(|at| at.duration_since(began));
    assert_eq!(after.map(|after| after.as_secs()), Some(8));
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_does_not_close_is_forced_to() {
    let broker = Broker::new("kafka");
    broker.hang_on_close();
    let bus = memory().transport(broker.shared()).build().unwrap();
    bus.start().await.unwrap();
    let result = bus.stop_within(secs(3)).await.unwrap();
    assert!(!result.graceful && result.duration >= secs(3));
    assert_eq!(broker.closed(), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn any_time_to_stop_will_do() {
    for timeout in [std::time::Duration::ZERO, std::time::Duration::MAX] {
        let bus = memory().subscribe(silent()).build().unwrap();
        bus.start().await.unwrap();
        let result = bus.stop_within(timeout).await.unwrap();
        assert!(result.duration < secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn abandoned_deliveries_run_again_when_their_lease_has_ended() {
    let memory = MemoryStore::new();
    let cut_off = Probe::new(memory.clone());
    let clock = Arc::new(relaybus::VirtualClock::starting_at(crate::kit::start_time()));
    let seen = Seen::<String>::default();
    let keep = seen.clone();
    let bus = RelayBus::builder(cut_off.clone())
        .shared_clock(clock.clone())
        .subscribe(Subscribe::to("notes", move |_: Envelope<Note>, _| keep.handled("first")))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    cut_off.takes().until(1).await;
    cut_off.always("complete", Fault::Hang);
    bus.publish_detached(note("a")).await.unwrap();
    seen.until(1).await;
    assert_eq!(bus.stop_within(secs(5)).await.unwrap().abandoned_deliveries, 1);
    let again = Seen::<u32>::default();
    let keep = again.clone();
    let next = RelayBus::builder(memory)
        .shared_clock(clock)
        .subscribe(Subscribe::to("notes", move |_: Envelope<Note>, context: HandlerContext| {
            keep.handled(context.attempt())
        }))
        .build()
        .unwrap();
    next.start().await.unwrap();
    pass(secs(15)).await;
    assert_eq!(again.count(), 0);
    pass(secs(20)).await;
    assert_eq!(again.all(), [2], "an attempt is charged: nobody knows how the first one ended");
    next.stop().await.unwrap();
}

/// Blocks its thread until it is told to go on, as code without an await does.
#[test]
fn a_handler_that_blocks_its_thread_is_abandoned_and_sees_that_the_bus_stops() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let seen = Seen::<String>::default();
    let (keep, quick) = (seen.clone(), Seen::<String>::default());
    let quick_keep = quick.clone();
    runtime.block_on(async {
        let bus = RelayBus::builder(MemoryStore::new())
            .subscribe(Subscribe::to("blocking", move |_: Envelope<Note>, context: HandlerContext| {
                let (keep, token) = (keep.clone(), context.cancellation());
                async move {
                    keep.push("blocks");
                    while !token.is_cancelled() {
                        std::thread::yield_now();
                    }
                    keep.push("sees the stop");
                }
            }))
            .subscribe(Subscribe::to("quick", move |event: Envelope<Placed>, _| {
                quick_keep.handled(event.payload.order_id)
            }))
            .build()
            .unwrap();
        bus.start().await.unwrap();
        bus.publish_detached(note("a")).await.unwrap();
        seen.until(1).await;
        for number in 0..100 {
            bus.publish_detached(placed(&number.to_string(), number)).await.unwrap();
        }
        quick.until(100).await;
        let result = bus.stop_within(ms(250)).await.unwrap();
        seen.until(2).await;
        assert!(result.duration < secs(5), "{result:?}");
    });
}

#[tokio::test(start_paused = true)]
async fn health_tells_what_is_missing() {
    let (store, broker) = (Probe::new(MemoryStore::new()), Broker::new("kafka"));
    let bus = builder(store.clone())
        .dispatcher(DispatcherOptions::default().enabled(false))
        .transport(broker.shared())
        .route(Route::to("kafka", "orders").event::<Placed>())
        .subscribe(silent())
        .build()
        .unwrap();
    let idle = bus.health().await;
    assert_eq!((idle.status, idle.running, idle.ready, idle.handlers), (HealthStatus::Down, false, false, 2));
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    pass(secs(42)).await;
    let up = bus.health().await;
    assert_eq!((up.status, up.running, up.ready), (HealthStatus::Up, true, true));
    let lag = up.lag_milliseconds.unwrap();
    assert!((42_000..42_100).contains(&lag), "{lag}");
    let json = serde_json::to_value(&up).unwrap();
    assert_eq!((&json["status"], &json["lagMilliseconds"]), (&"up".into(), &lag.into()));
    assert_eq!(json["statistics"]["pending"], 1);
    assert!(json["statistics"]["oldestDueAt"].is_number() && json.get("error").is_none(), "{json}");
    broker.set_ready(false);
    let down = bus.health().await;
    assert_eq!((down.status, down.running, down.ready, bus.is_ready()), (HealthStatus::Down, true, false, false));
    broker.set_ready(true);
    store.once("statistics", Fault::Fail);
    let down = bus.health().await;
    assert_eq!(
        (down.status, down.ready, down.statistics, down.lag_milliseconds),
        (HealthStatus::Down, true, None, None)
    );
    assert_eq!(down.error.unwrap().message, "the store is away: connection refused");
    bus.stop().await.unwrap();
    assert_eq!(bus.health().await.status, HealthStatus::Down);
}
