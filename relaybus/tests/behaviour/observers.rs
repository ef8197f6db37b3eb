//! Observers: every hook with what it reports, at no cost when nobody listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use relaybus::observe::{
    ClaimFinished, HandlerFinished, HandlerStarted, PublishFinished, ReceiveFinished, TransportSent,
};
use relaybus::store::{DeliveryId, Statistics};
use relaybus::transport::Received;
use relaybus::{
    Clock, Envelope, Error, ErrorInfo, EventType, Headers, Interest, MemoryStore, Observer, RawPayload, RelayBus,
    Route, Stage, Subscribe, Timestamp, UnroutedEvents, VirtualClock,
};

use crate::kit::{
    Broker, Fault, Note, Placed, Probe, Seen, builder, crash_with_everything, limited, memory, ms, note, pass, placed,
    secs, soon, start_time,
};

/// Writes down what it is told.
struct Recorder {
    interest: Interest,
    seen: Seen,
}

fn recorder(interest: Interest) -> (Arc<dyn Observer>, Seen) {
    let seen = Seen::default();
    (Arc::new(Recorder { interest, seen: seen.clone() }), seen)
}

fn code(error: Option<&Error>) -> &'static str {
    error.map_or("ok", Error::code)
}

impl Observer for Recorder {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn publish_finished(&self, report: &PublishFinished<'_>) {
        let types: Vec<&str> = report.event_types.iter().map(EventType::as_str).collect();
        self.seen.push(format!("publish {types:?} {} {:?}", code(report.error), report.duration));
    }

    fn claim_finished(&self, report: &ClaimFinished<'_>) {
        self.seen.push(format!("claim {} of {} {}", report.claimed, report.requested, code(report.error)));
    }

    fn handler_started(&self, report: &HandlerStarted<'_>) {
        let HandlerStarted { handler, event_type, attempt, route, latency, stored_latency, .. } = report;
        self.seen.push(format!("start {handler} {event_type} {attempt} {route} {latency:?} {stored_latency:?}"));
    }

    fn handler_finished(&self, report: &HandlerFinished<'_>) {
        let HandlerFinished { handler, event_type, attempt, route, duration, error, .. } = report;
        self.seen.push(format!("finish {handler} {event_type} {attempt} {route} {duration:?} {}", code(*error)));
    }

    fn transport_sent(&self, report: &TransportSent<'_>) {
        let TransportSent { transport, system, destination, duration, error, .. } = report;
        self.seen.push(format!("sent {transport} {system} {destination} {duration:?} {}", code(*error)));
    }

    fn receive_finished(&self, report: &ReceiveFinished<'_>) {
        let outcome = match report.outcome {
            Ok(outcome) => format!("{outcome:?}"),
            Err(error) => error.code().to_owned(),
        };
        let tenant = report.headers.get("tenant").unwrap_or("-");
        let ReceiveFinished { transport, destination, source, .. } = report;
        self.seen.push(format!("receive [{transport}] [{destination}] {source} {tenant} {outcome}"));
    }

    fn invalid_message(&self, transport: &str, destination: &str, reason: &str) {
        self.seen.push(format!("invalid {transport} {destination} {reason}"));
    }

    fn backlog(&self, statistics: &Statistics, oldest_age: Duration) {
        self.seen.push(format!("backlog {} {oldest_age:?}", statistics.pending));
    }

    fn delivery_completed(&self, delivery: &DeliveryId) {
        self.seen.push(format!("completed {}", delivery.handler()));
    }

    fn retry_scheduled(&self, delivery: &DeliveryId, attempt: u32, delay: Duration, error: &ErrorInfo) {
        assert!(delay <= secs(1));
        self.seen.push(format!("retry {} {attempt} {}", delivery.handler(), error.message));
    }

    fn delivery_dead(&self, delivery: &DeliveryId, attempt: u32, error: &ErrorInfo) {
        self.seen.push(format!("dead {} {attempt} {} {:?}", delivery.handler(), error.message, error.code));
    }

    fn lease_lost(&self, delivery: &DeliveryId) {
        self.seen.push(format!("lost {}", delivery.handler()));
    }

    fn failure(&self, stage: Stage, error: &Error) {
        self.seen.push(format!("failure {} {error}", stage.as_str()));
    }
}

/// A handler of notes that takes 20 ms and fails as often as the note's text says.
fn failing_notes() -> Subscribe {
    Subscribe::to("notes", |event: Envelope<Note>, context: relaybus::HandlerContext| async move {
        pass(ms(20)).await;
        let failures: u32 = event.payload.text.parse().unwrap();
        if context.attempt() <= failures { Err("not yet") } else { Ok(()) }
    })
}

#[tokio::test(start_paused = true)]
async fn publishing_and_handling_are_reported_step_by_step() {
    let (observer, seen) = recorder(Interest::ALL);
    let bus = memory().retry(soon(5)).observer(observer).subscribe(failing_notes()).build().unwrap();
    bus.publish_detached(note("1")).occurred_at(start_time().before(secs(5))).await.unwrap();
    bus.run_once().await.unwrap();
    pass(ms(2)).await;
    bus.run_once().await.unwrap();
    let all = seen.all();
    assert_eq!(all[0], r#"publish ["note.v1"] ok 0ns"#);
    assert_eq!(all[1], "claim 1 of 10 ok");
    assert_eq!(all[2], "start notes note.v1 1 false 5s 0ns");
    assert!(all[3].starts_with("finish notes note.v1 1 false 2") && all[3].ends_with("ms RELAYBUS_ERROR"), "{all:?}");
    assert_eq!(all[4], "retry notes 1 not yet");
    assert_eq!(all[5], "claim 1 of 10 ok");
    assert!(all[6].starts_with("start notes note.v1 2 false 5.02"), "{all:?}");
    assert!(all[7].starts_with("finish notes note.v1 2 false 2") && all[7].ends_with("ms ok"), "{all:?}");
    assert_eq!(all[8..], ["completed notes"]);
}

#[tokio::test(start_paused = true)]
async fn a_publish_that_fails_is_reported_with_its_types() {
    let (observer, seen) = recorder(Interest::PUBLISH);
    let store = Probe::new(MemoryStore::new());
    store.once("append_alone", Fault::Fail);
    let bus = builder(store)
        .observer(observer)
        .subscribe(failing_notes())
        .unrouted_events(UnroutedEvents::Reject)
        .build()
        .unwrap();
    drop(bus.publish_detached(note("away")).await);
    drop(bus.publish_detached(placed("nobody", 1)).await);
    drop(bus.publish_detached(note("a\0b")).await);
    drop(bus.publish_detached(note("bad")).delay("soon").await);
    drop(bus.publish_all_detached(relaybus::EventBatch::new().with(note("1")).with(placed("", 2))).await);
    bus.publish_detached(note("1")).await.unwrap();
    assert_eq!(
        seen.all(),
        [
            r#"publish ["note.v1"] RELAYBUS_ERROR 0ns"#,
            r#"publish ["order.placed.v1"] RELAYBUS_CONFIGURATION 0ns"#,
            r#"publish ["note.v1"] RELAYBUS_EVENT_VALIDATION 0ns"#,
            r#"publish ["note.v1"] RELAYBUS_CONFIGURATION 0ns"#,
            r#"publish ["note.v1", "order.placed.v1"] RELAYBUS_CONFIGURATION 0ns"#,
            r#"publish ["note.v1"] ok 0ns"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn every_dead_letter_is_told_once_with_its_reason() {
    let (observer, seen) = recorder(Interest::DELIVERY);
    let bus = memory()
        .retry(soon(2))
        .observer(observer)
        .subscribe(failing_notes().retry(limited(2)))
        .subscribe(Subscribe::to("orders", |_: Envelope<Placed>, _| async {
            Err::<(), _>(Error::non_retryable("never"))
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("5")).await.unwrap();
    bus.publish_detached(placed("a", 1)).await.unwrap();
    pass(secs(10)).await;
    bus.stop().await.unwrap();
    let mut all = seen.all();
    all.sort();
    assert_eq!(
        all,
        [
            "dead notes 2 not yet None",
            "dead orders 1 the handler gave up without a retry: never Some(\"RELAYBUS_NON_RETRYABLE\")",
            "retry notes 1 not yet",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_died_of_crashes_has_the_number_of_its_last_attempt() {
    let (observer, seen) = recorder(Interest::DELIVERY | Interest::HANDLER);
    let (store, clock) = (MemoryStore::new(), VirtualClock::starting_at(start_time()));
    let bus = RelayBus::builder(store.clone())
        .clock(clock)
        .observer(observer)
        .subscribe(failing_notes().retry(limited(2)))
        .build()
        .unwrap();
    bus.publish_detached(note("0")).await.unwrap();
    for _ in 0..2 {
        crash_with_everything(&store, clock.now(), "notes").await;
        pass(secs(31)).await;
    }
    bus.start().await.unwrap();
    seen.until(1).await;
    bus.stop().await.unwrap();
    assert_eq!(
        seen.all(),
        ["dead notes 2 the delivery's workers ended 2 times without an answer, which uses up its 2 attempts \
          Some(\"RELAYBUS_ATTEMPTS_EXHAUSTED\")"]
    );
}

#[tokio::test(start_paused = true)]
async fn sends_are_reported_and_routes_told_from_handlers() {
    let (observer, seen) = recorder(Interest::SEND | Interest::HANDLER);
    let broker = Broker::new("kafka");
    let bus = memory()
        .observer(observer)
        .transport(broker.shared())
        .route(Route::to("kafka", "orders").event::<Placed>().timeout(secs(2)))
        .build()
        .unwrap();
    broker.hang();
    bus.publish_detached(placed("a", 1)).await.unwrap();
    bus.drain().await.unwrap();
    pass(secs(1)).await;
    bus.drain().await.unwrap();
    let id = "relaybus.transport:kafka:orders order.placed.v1";
    let all = seen.all();
    assert_eq!(all[0], format!("start {id} 1 true 0ns 0ns"));
    assert!(
        all[1].starts_with("sent kafka broker-system orders 2") && all[1].ends_with(" RELAYBUS_HANDLER_TIMEOUT"),
        "{all:?}"
    );
    assert!(
        all[2].starts_with(&format!("finish {id} 1 true 2")) && all[2].ends_with("RELAYBUS_HANDLER_TIMEOUT"),
        "{all:?}"
    );
    assert_eq!(all[4], "sent kafka broker-system orders 0ns ok");
    assert_eq!(all.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn what_is_received_is_reported_with_its_outcome_and_origin() {
    let (observer, seen) = recorder(Interest::RECEIVE);
    let broker = Broker::new("kafka");
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone())
        .observer(observer)
        .transport(broker.shared())
        .subscription("kafka", ["notes"])
        .subscribe(failing_notes())
        .build()
        .unwrap();
    bus.start().await.unwrap();
    let event = |event_type: &str, payload: &str| {
        let id = relaybus::EventId::new("e-1").unwrap();
        let event_type = EventType::new(event_type).unwrap();
        let mut event = Envelope::new(id, event_type, "billing", RawPayload::stored(payload), start_time());
        event.headers = Headers::new([("tenant", "acme")]).unwrap();
        event
    };
    let from = Received { destination: "notes".to_owned() };
    let inbox = broker.inbox();
    store.once("append_alone", Fault::Fail);
    let cases = [
        ("note.v1", r#"{"text":"0"}"#),
        ("note.v1", r#"{"text":"0"}"#),
        ("note.v1", r#"{"text":"0"}"#),
        ("other.v1", "{}"),
        ("note.v1", r#""\u0000""#),
    ];
    for (event_type, payload) in cases {
        drop(inbox.receive(event(event_type, payload), from.clone()).await);
    }
    inbox.invalid(&from, "it has no id");
    drop(bus.receive(event("note.v1", "{}")).await);
    let origin = "receive [kafka] [notes] billing acme";
    let expected = [
        format!("{origin} RELAYBUS_ERROR"),
        format!("{origin} Accepted"),
        format!("{origin} Duplicate"),
        format!("{origin} Ignored"),
        format!("{origin} RELAYBUS_INVALID_ENVELOPE"),
        "invalid kafka notes it has no id".to_owned(),
        "receive [] [] billing acme Duplicate".to_owned(),
    ];
    assert_eq!(seen.all(), expected);
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_backlog_is_reported_with_the_age_of_the_oldest() {
    let (observer, seen) = recorder(Interest::BACKLOG);
    let bus = memory()
        .observer(observer)
        .backlog_interval("30s")
        .dispatcher(relaybus::DispatcherOptions::default().enabled(false))
        .subscribe(failing_notes())
        .build()
        .unwrap();
    bus.start().await.unwrap();
    pass(secs(10)).await;
    bus.publish_detached(note("0")).await.unwrap();
    bus.publish_detached(note("0")).delay("1h").await.unwrap();
    seen.until(2).await;
    let all = seen.all();
    assert!(all[0].starts_with("backlog 2 20") && all[1].starts_with("backlog 2 50"), "{all:?}");
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_the_bus_catches_is_reported_with_its_stage() {
    let (observer, seen) = recorder(Interest::FAILURE);
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone())
        .observer(observer)
        .backlog_interval("30s")
        .subscribe(failing_notes().retry(limited(1)))
        .build()
        .unwrap();
    store.once("watch", Fault::Fail);
    store.once("open_session", Fault::Fail);
    store.once("complete", Fault::Fail);
    store.once("settle", Fault::Fail);
    store.once("statistics", Fault::Fail);
    store.once("purge", Fault::Fail);
    store.once("close_session", Fault::Fail);
    store.once("close", Fault::Fail);
    bus.start().await.unwrap();
    bus.publish_detached(note("0")).await.unwrap();
    pass(secs(10)).await;
    bus.publish_detached(note("1")).await.unwrap();
    pass(secs(3601)).await;
    bus.stop().await.unwrap();
    let stages = ["watch", "claim", "complete", "settle", "backlog", "purge", "stop", "stop"];
    let expected: Vec<String> = stages.iter().map(|stage| format!("failure {stage} the store is away")).collect();
    assert_eq!(seen.all(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_told_once_a_delivery() {
    let (observer, seen) = recorder(Interest::DELIVERY);
    let store = MemoryStore::new();
    let cut_off = Probe::new(store.clone());
    let clock = Arc::new(VirtualClock::starting_at(start_time()));
    let slow = || Subscribe::to("slow", |_: Envelope<Note>, _| std::future::pending::<()>());
    let bus = RelayBus::builder(cut_off.clone())
        .shared_clock(clock.clone())
        .observer(observer)
        .subscribe(slow())
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    pass(secs(1)).await;
    for call in ["turn", "settle"] {
        cut_off.always(call, Fault::Fail);
    }
    pass(secs(40)).await;
    let other = RelayBus::builder(store)
        .shared_clock(clock)
        .subscribe(Subscribe::to("slow", |_: Envelope<Note>, _| async {}))
        .build()
        .unwrap();
    while other.drain().await.unwrap() == 0 {
        pass(secs(1)).await;
    }
    for call in ["turn", "settle"] {
        cut_off.heal(call);
    }
    pass(secs(60)).await;
    assert_eq!(seen.all(), ["lost slow"]);
    bus.stop().await.unwrap();
}

/// Panics in every hook it has.
struct Clumsy(Seen);

impl Observer for Clumsy {
    fn publish_finished(&self, _: &PublishFinished<'_>) {
        panic!("publish hook");
    }

    fn handler_started(&self, _: &HandlerStarted<'_>) {
        panic!("start hook");
    }

    fn delivery_completed(&self, _: &DeliveryId) {
        panic!("completed hook");
    }

    fn failure(&self, stage: Stage, error: &Error) {
        self.0.push(format!("{} {error}", stage.as_str()));
        panic!("failure hook");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_is_reported_and_changes_nothing() {
    let (observer, seen) = recorder(Interest::FAILURE | Interest::DELIVERY);
    let own = Seen::default();
    let bus =
        memory().observer(Arc::new(Clumsy(own.clone()))).observer(observer).subscribe(failing_notes()).build().unwrap();
    bus.publish_detached(note("0")).await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 1);
    assert_eq!(bus.statistics().await.unwrap().pending, 0);
    let hooks =
        ["publish", "start", "completed"].map(|hook| format!("observer an observer hook panicked: {hook} hook"));
    assert_eq!(own.all(), hooks);
    let mut others: Vec<String> = hooks.iter().map(|hook| format!("failure {hook}")).collect();
    others.push("completed notes".to_owned());
    assert_eq!(seen.all(), others);
}

/// Counts how often it is read.
struct Counting {
    inner: VirtualClock,
    reads: Arc<AtomicUsize>,
}

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.now()
    }

    fn monotonic(&self) -> Duration {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.monotonic()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.inner.sleep(duration)
    }
}

/// How often the clock is read for a publish and for a drain, with an observer of these hooks.
async fn reads(interest: Option<Interest>) -> (usize, usize) {
    let reads = Arc::new(AtomicUsize::new(0));
    let clock = Counting { inner: VirtualClock::starting_at(start_time()), reads: reads.clone() };
    let mut builder = RelayBus::builder(MemoryStore::new())
        .clock(clock)
        .subscribe(Subscribe::to("notes", |_: Envelope<Note>, _| async {}));
    if let Some(interest) = interest {
        builder = builder.observer(recorder(interest).0);
    }
    let bus = builder.build().unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    let published = reads.swap(0, Ordering::SeqCst);
    assert_eq!(bus.drain().await.unwrap(), 1);
    (published, reads.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn hooks_nobody_wants_cost_no_reading_of_the_clock() {
    let nobody = reads(None).await;
    assert_eq!(nobody.0, 2, "when it is stored, and its id");
    for interest in [Interest::NONE, Interest::DELIVERY, Interest::FAILURE, Interest::RECEIVE, Interest::BACKLOG] {
        assert_eq!(reads(Some(interest)).await, nobody, "{interest:?}");
    }
    assert_eq!(reads(Some(Interest::PUBLISH)).await, (nobody.0 + 2, nobody.1));
    assert_eq!(reads(Some(Interest::HANDLER)).await, (nobody.0, nobody.1 + 3));
    let all = reads(Some(Interest::ALL)).await;
    assert!(all.0 > nobody.0 && all.1 > nobody.1 + 3);
}
