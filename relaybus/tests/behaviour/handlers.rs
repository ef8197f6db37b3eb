//! What happens to an attempt: success, failure, timeout, panic, cancellation.

use std::sync::{Arc, Mutex};

use relaybus::store::DeliveryStatus;
use relaybus::{
    Attempts, BoxError, Envelope, Error, ErrorInfo, HandlerContext, MemoryStore, RelayBus, RetryOverrides, Subscribe,
};
use tokio_util::sync::CancellationToken;

use crate::kit::{Note, Placed, Seen, deliveries, limited, memory, ms, note, pass, placed, secs, soon};

fn last_error(record: &relaybus::store::DeliveryRecord) -> ErrorInfo {
    serde_json::from_str(record.last_error.as_deref().expect("it has failed")).unwrap()
}

/// What is kept of the error of a note that `handler` fails for good.
async fn kept(handler: Subscribe) -> ErrorInfo {
    let bus = memory().subscribe(handler.retry(limited(1))).build().unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 1);
    let records = deliveries(&bus).await;
    assert_eq!((records[0].status, records[0].attempts), (DeliveryStatus::Dead, 1));
    last_error(&records[0])
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_retried_within_its_backoff_until_the_attempts_are_used_up() {
    let seen = Seen::<(u32, Option<u32>, bool, bool, String)>::default();
    let times = Seen::<u128>::default();
    let (keep, at, clock) =
        (seen.clone(), times.clone(), relaybus::VirtualClock::starting_at(crate::kit::start_time()));
    let failing = Subscribe::to("failing", move |_: Envelope<Note>, context: HandlerContext| {
        let (attempt, last) = (context.attempt(), context.is_last_attempt());
        keep.push((attempt, context.max_attempts(), last, context.redelivered(), context.idempotency_key()));
        at.push(relaybus::Clock::monotonic(&clock).as_millis());
        async { Err::<(), _>("not today") }
    });
    let bus = memory().subscribe(failing.retry(limited(4))).build().unwrap();
    bus.start().await.unwrap();
    let id = bus.publish_detached(note("a")).await.unwrap();
    seen.until(4).await;
    pass(secs(3600)).await;
    let key = format!("failing#{id}");
    let expected: Vec<_> = (1..=4).map(|n| (n, Some(4), n == 4, n > 1, key.clone())).collect();
    assert_eq!(seen.all(), expected);
    let times = times.all();
    // Full jitter below 1, 2 and 4 s, found by the poll of 1 s.
    for (failures, pair) in times.windows(2).enumerate() {
        assert!(pair[1] - pair[0] <= (1 << failures) * 1000 + 1000, "{times:?}");
    }
    let records = deliveries(&bus).await;
    assert_eq!((records[0].status, records[0].attempts), (DeliveryStatus::Dead, 4));
    let error = last_error(&records[0]);
    assert_eq!((error.name.as_str(), error.message.as_str(), error.code), ("Error", "not today", None));
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unlimited_attempts_have_no_end() {
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let failing = Subscribe::to("failing", move |_: Envelope<Note>, context: HandlerContext| {
        assert_eq!((context.max_attempts(), context.is_last_attempt()), (None, false));
        keep.push(context.attempt());
        async { Err::<(), _>("not today") }
    });
    let retry = RetryOverrides { attempts: Some(Attempts::Unlimited), ..RetryOverrides::NONE };
    let bus = memory().retry(soon(3)).subscribe(failing.retry(retry)).build().unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    seen.until(500).await;
    bus.stop().await.unwrap();
    assert!(seen.all().windows(2).all(|pair| pair[1] == pair[0] + 1));
}

#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error("could not charge the card")]
    Charge(#[source] Error),
    #[error("the gateway is away")]
    Gateway(#[source] std::io::Error),
}

#[tokio::test(start_paused = true)]
async fn a_non_retryable_error_buries_at_once_however_it_is_wrapped() {
    let bare = Subscribe::to("h", |_: Envelope<Note>, _| async { Err::<(), _>(Error::non_retryable("no account")) });
    let boxed = Subscribe::to("h", |_: Envelope<Note>, _| async {
        Err::<(), BoxError>(Error::non_retryable("no account").into())
    });
    let wrapped = Subscribe::to("h", |_: Envelope<Note>, _| async {
        Err::<(), _>(AppError::Charge(Error::non_retryable("no account")))
    });
    let gateway = Subscribe::to("h", |_: Envelope<Note>, _| async {
        Err::<(), _>(AppError::Gateway(std::io::Error::other("connection refused")))
    });
    for (handler, dead, name, message, code) in [
        (
            bare,
            true,
            "NonRetryableError",
            "the handler gave up without a retry: no account",
            Some("RELAYBUS_NON_RETRYABLE"),
        ),
        (
            boxed,
            true,
            "NonRetryableError",
            "the handler gave up without a retry: no account",
            Some("RELAYBUS_NON_RETRYABLE"),
        ),
        (wrapped, true, "Error", "could not charge the card: the handler gave up without a retry: no account", None),
        (gateway, false, "Error", "the gateway is away: connection refused", None),
    ] {
        let bus = memory().subscribe(handler).build().unwrap();
        bus.publish_detached(note("a")).await.unwrap();
        bus.run_once().await.unwrap();
        let records = deliveries(&bus).await;
        let expected = if dead { DeliveryStatus::Dead } else { DeliveryStatus::Pending };
        assert_eq!((records[0].status, records[0].attempts), (expected, 1), "{message}");
        let error = last_error(&records[0]);
        assert_eq!((error.name.as_str(), error.message.as_str(), error.code.as_deref()), (name, message, code));
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeout_is_the_handlers_own_or_the_buss_or_none() {
    let endless = |id: &str| Subscribe::to(id, |_: Envelope<Note>, _| std::future::pending::<()>());
    let bus = memory()
        .handler_timeout("10s")
        .subscribe(endless("a.own").timeout(secs(2)))
        .subscribe(endless("b.default"))
        .subscribe(endless("c.none").without_timeout())
        .build()
        .unwrap();
    let timeouts: Vec<_> = bus.handlers().into_iter().map(|handler| handler.timeout).collect();
    assert_eq!(timeouts, [Some(secs(2)), Some(secs(10)), None]);
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    pass(secs(1)).await;
    let attempts = async |bus: &RelayBus<MemoryStore>| {
        deliveries(bus).await.iter().map(|record| record.attempts).collect::<Vec<_>>()
    };
    assert_eq!(attempts(&bus).await, [0, 0, 0]);
    pass(ms(1500)).await;
    assert_eq!(attempts(&bus).await, [1, 0, 0]);
    pass(ms(8500)).await;
    let records = deliveries(&bus).await;
    assert!(records[1].attempts == 1 && records[2].attempts == 0, "{records:?}");
    let error = last_error(&records[1]);
    assert_eq!(error.name, "HandlerTimeoutError");
    assert_eq!(error.message, "the handler did not finish within its timeout of 10s");
    assert_eq!(error.code.as_deref(), Some("RELAYBUS_HANDLER_TIMEOUT"));
    pass(secs(3600)).await;
    assert_eq!(deliveries(&bus).await.iter().find(|r| r.id.handler().as_str() == "c.none").unwrap().attempts, 0);
    bus.stop_within(secs(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_timeout_cancels_what_the_handler_spawned_and_runs_never_overlap() {
    let (seen, tokens) = (Seen::<String>::default(), Arc::new(Mutex::new(Vec::<CancellationToken>::new())));
    let (keep, kept) = (seen.clone(), tokens.clone());
    let slow = Subscribe::to("slow", move |_: Envelope<Note>, context: HandlerContext| {
        let (keep, attempt, token) = (keep.clone(), context.attempt(), context.cancellation());
        assert!(!token.is_cancelled());
        kept.lock().unwrap().push(token);
        async move {
            keep.push(format!("{attempt} begins"));
            let _ended = OnDrop(keep.clone(), format!("{attempt} ended"));
            std::future::pending::<()>().await;
        }
    });
    let bus = memory().retry(soon(2)).handler_timeout("5s").subscribe(slow).build().unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    seen.until(4).await;
    bus.stop().await.unwrap();
    assert_eq!(seen.all(), ["1 begins", "1 ended", "2 begins", "2 ended"]);
    assert!(tokens.lock().unwrap().iter().all(CancellationToken::is_cancelled));
}

struct OnDrop(Seen, String);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.push(self.1.clone());
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_cancels_nothing() {
    let tokens = Arc::new(Mutex::new(Vec::<CancellationToken>::new()));
    let kept = tokens.clone();
    let bus = memory()
        .subscribe(Subscribe::to("h", move |_: Envelope<Note>, context: HandlerContext| {
            kept.lock().unwrap().push(context.cancellation());
            async {}
        }))
        .build()
        .unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    bus.drain().await.unwrap();
    assert!(!tokens.lock().unwrap()[0].is_cancelled(), "what a handler left running on purpose goes on");
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_the_attempt_wherever_it_happens() {
    let at_once = Subscribe::to("h", |event: Envelope<Note>, _| {
        assert!(event.payload.text.is_empty(), "boom at the call");
        async {}
    });
    assert_eq!(kept(at_once).await.message, "the handler panicked: boom at the call");
    let later = Subscribe::to("h", |_: Envelope<Note>, _| async {
        pass(ms(5)).await;
        let text = String::from("later");
        assert!(text.is_empty(), "boom {text}");
    });
    let error = kept(later).await;
    assert_eq!(
        (error.name.as_str(), error.message.as_str(), error.code),
        ("Panic", "the handler panicked: boom later", None)
    );
    let strange = Subscribe::to("h", |_: Envelope<Note>, _| async {
        if ms(1) > ms(0) {
            std::panic::panic_any(5);
        }
    });
    assert_eq!(kept(strange).await.message, "the handler panicked: a panic without a text");
    #[allow(clippy::disallowed_methods, reason = "a handler may spawn")]
    let spawned =
        Subscribe::to("h", |_: Envelope<Note>, _| async { tokio::spawn(async { panic!("boom in a task") }).await });
    let error = kept(spawned).await;
    assert!(error.message.contains("panicked with message") && error.message.contains("boom in a task"), "{error:?}");
}

/// Panics when it is dropped before it was used, as guards of some libraries do.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped before it was used");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_a_handler_is_dropped_costs_an_attempt_and_no_slot() {
    let seen = Seen::<String>::default();
    let keep = seen.clone();
    let bus = memory()
        .retry(soon(1))
        .dispatcher(relaybus::DispatcherOptions::default().concurrency(1))
        .subscribe(
            Subscribe::to("bomb", |_: Envelope<Note>, _| async {
                let _bomb = Bomb;
                std::future::pending::<()>().await;
            })
            .timeout(secs(1)),
        )
        .subscribe(Subscribe::to("fine", move |event: Envelope<Placed>, _| keep.handled(event.payload.order_id)))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    for number in 0..3 {
        bus.publish_detached(note(&number.to_string())).await.unwrap();
    }
    bus.publish_detached(placed("after", 1)).await.unwrap();
    seen.until(1).await;
    pass(secs(10)).await;
    let records = deliveries(&bus).await;
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record.status == DeliveryStatus::Dead), "{records:?}");
    assert!(last_error(&records[0]).message.contains("dropped before it was used"));
    assert!(bus.stop().await.unwrap().graceful);
}

/// An error of somebody else's that does what an error should not.
#[derive(Debug)]
enum Rude {
    /// Panics when it is shown.
    Shown,
    /// Panics when it is dropped.
    Dropped(Bomb),
    /// Is its own cause.
    Endless,
}

impl std::fmt::Display for Rude {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        assert!(!matches!(self, Self::Shown), "not to be shown");
        f.write_str("rude")
    }
}

impl std::error::Error for Rude {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        matches!(self, Self::Endless).then_some(&Self::Endless)
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_misbehaves_costs_an_attempt_and_no_dispatcher() {
    let seen = Seen::<String>::default();
    let keep = seen.clone();
    let bus = memory()
        .retry(soon(2))
        .dispatcher(relaybus::DispatcherOptions::default().concurrency(1))
        .subscribe(Subscribe::to("a.shown", |_: Envelope<Note>, _| async { Err::<(), _>(Rude::Shown) }))
        .subscribe(Subscribe::to("b.dropped", |_: Envelope<Note>, _| async { Err::<(), _>(Rude::Dropped(Bomb)) }))
        .subscribe(Subscribe::to("c.endless", |_: Envelope<Note>, _| async { Err::<(), _>(Rude::Endless) }))
        .subscribe(Subscribe::to("d.thrown", |_: Envelope<Note>, _| async {
            if ms(1) > ms(0) {
                std::panic::panic_any(Bomb);
            }
        }))
        .subscribe(Subscribe::to("fine", move |event: Envelope<Placed>, _| keep.handled(event.payload.order_id)))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    pass(secs(60)).await;
    let records = deliveries(&bus).await;
    let kept: Vec<_> = records.iter().map(|record| (record.attempts, last_error(record).message)).collect();
    let expected =
        ["the handler panicked: not to be shown", "rude", "rude", "the handler panicked: a panic without a text"];
    assert_eq!(kept, expected.map(|message| (2, message.to_owned())));
    assert!(records.iter().all(|record| record.status == DeliveryStatus::Dead), "{records:?}");
    bus.publish_detached(placed("after", 1)).await.unwrap();
    seen.until(1).await;
    assert!(bus.is_ready() && bus.stop().await.unwrap().graceful);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_does_not_decode_is_buried_at_once_and_stops_nobody() {
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let bus = memory()
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, _| keep.handled(event.payload.number)))
        .build()
        .unwrap();
    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
    #[event("order.placed.v1")]
    struct Older {
        order_id: String,
        number: String,
    }
    let secret = "a secret that no log may show";
    bus.publish_detached(Older { order_id: "a".to_owned(), number: secret.to_owned() }).await.unwrap();
    for number in 2..=10 {
        bus.publish_detached(placed("a", number)).await.unwrap();
    }
    bus.drain().await.unwrap();
    assert_eq!(seen.count(), 9);
    let records = deliveries(&bus).await;
    assert_eq!((records.len(), records[0].status, records[0].attempts), (1, DeliveryStatus::Dead, 1));
    let error = last_error(&records[0]);
    assert_eq!(error.code.as_deref(), Some("RELAYBUS_EVENT_VALIDATION"));
    assert!(
        error.message.starts_with("the payload of `order.placed.v1` is not valid: it does not decode (data error"),
        "{error:?}"
    );
    assert!(error.message.contains("invalid type: string, expected u32"), "{error:?}");
    assert!(!error.message.contains(secret), "{error:?}");
    assert_eq!(error.message.matches("line 1").count(), 1, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_its_validation_refuses_after_decoding_is_buried_at_once() {
    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
    #[event("note.v1", validate = never_empty)]
    struct Strict {
        text: String,
    }
    fn never_empty(event: &Strict) -> Result<(), &'static str> {
        if event.text.is_empty() { Err("the text is empty") } else { Ok(()) }
    }
    let strict = Subscribe::to("h", |_: Envelope<Strict>, _| async {});
    let bus = memory().subscribe(strict).build().unwrap();
    bus.publish_detached(note("")).await.unwrap();
    bus.drain().await.unwrap();
    let records = deliveries(&bus).await;
    assert_eq!((records[0].status, records[0].attempts), (DeliveryStatus::Dead, 1));
    assert_eq!(
        last_error(&records[0]).message,
        "the payload of `note.v1` is not valid: its validation refused it: the text is empty"
    );
}
