//! Running by hand: `wake`, `run_once` and `drain`.

use relaybus::{DispatcherOptions, Envelope, Error, HandlerContext, MemoryStore, RelayBus, Subscribe};
use std::sync::{Arc, OnceLock};

use crate::kit::{Fault, Note, Placed, Probe, Seen, builder, deliveries, memory, ms, note, pass, placed, secs};

fn keeping(seen: &Seen) -> Subscribe {
    let seen = seen.clone();
    Subscribe::to("notes", move |event: Envelope<Note>, _| seen.handled(event.payload.text))
}

#[tokio::test(start_paused = true)]
async fn run_once_runs_one_batch_and_says_how_much_that_was() {
    let seen = Seen::default();
    let bus = memory()
        .dispatcher(DispatcherOptions::default().concurrency(4).batch_size(3))
        .subscribe(keeping(&seen))
        .build()
        .unwrap();
    for number in 0..7 {
        bus.publish_detached(note(&number.to_string())).await.unwrap();
    }
    for expected in [3, 3, 1, 0] {
        assert_eq!(bus.run_once().await.unwrap(), expected);
    }
    assert_eq!(seen.count(), 7);
}

#[tokio::test(start_paused = true)]
async fn drain_runs_everything_due_and_what_that_publishes() {
    let (seen, bus_of_handler) = (Seen::<String>::default(), Arc::new(OnceLock::<RelayBus>::new()));
    let its_bus = bus_of_handler.clone();
    let bus = memory()
        .subscribe(keeping(&seen))
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, _| {
            let bus = its_bus.get().unwrap().clone();
            async move { bus.publish_detached(note(&event.payload.order_id)).await.map(drop) }
        }))
        .build()
        .unwrap();
    bus_of_handler.set(bus.any()).unwrap();
    for number in 0..50 {
        bus.publish_detached(placed(&number.to_string(), number)).await.unwrap();
    }
    bus.publish_detached(note("later")).delay("1h").await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 100, "attempts that ended");
    assert_eq!((seen.count(), deliveries(&bus).await.len()), (50, 1), "what is due later stays");
    assert_eq!(bus.drain().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_attempts_end_too_and_are_not_due_again_at_once() {
    let bus = memory()
        .subscribe(Subscribe::to("notes", |_: Envelope<Note>, _| async { Err::<(), _>("not today") }))
        .build()
        .unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 1);
    assert_eq!(deliveries(&bus).await[0].attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_publishes_what_it_handles_never_drains() {
    let bus_of_handler = Arc::new(OnceLock::<RelayBus>::new());
    let its_bus = bus_of_handler.clone();
    let bus = memory()
        .subscribe(Subscribe::to("notes", move |_: Envelope<Note>, _| {
            let bus = its_bus.get().unwrap().clone();
            async move { bus.publish_detached(note("again")).await.map(drop) }
        }))
        .build()
        .unwrap();
    bus_of_handler.set(bus.any()).unwrap();
    bus.publish_detached(note("first")).await.unwrap();
    let error = bus.drain().await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_DRAIN_INCOMPLETE");
    assert_eq!(
        error.to_string(),
        "deliveries were still due after 10000 batches: a handler may publish what it handles"
    );
    assert_eq!(bus.statistics().await.unwrap().processing, 0, "what it held went back");
}

#[tokio::test(start_paused = true)]
async fn drain_reports_a_store_that_fails() {
    for call in ["open_session", "turn", "complete"] {
        let store = Probe::new(MemoryStore::new());
        let seen = Seen::default();
        let bus = builder(store.clone()).subscribe(keeping(&seen)).build().unwrap();
        bus.publish_detached(note("a")).await.unwrap();
        store.once(call, Fault::Fail);
        let error = bus.drain().await.unwrap_err();
        assert!(matches!(error, Error::Store { .. }), "{call}: {error}");
        assert_eq!(error.to_string(), "the store is away");
        let left = usize::from(call != "complete");
        assert_eq!(bus.drain().await.unwrap(), left, "{call}: and the next one starts afresh");
        assert_eq!(seen.count(), 1, "{call}: what had succeeded is not run again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_the_store_failed_ends_its_handlers_before_its_session() {
    struct Leaving(Seen);
    impl Drop for Leaving {
        fn drop(&mut self) {
            self.0.push("handler ended");
        }
    }
    let store = Probe::new(MemoryStore::new());
    let (calls, started) = (store.calls().clone(), Seen::<u32>::default());
    let keep = started.clone();
    let bus = builder(store.clone())
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, context: HandlerContext| {
            let leaving = Leaving(calls.clone());
            let first = context.attempt() == 1 && !context.redelivered();
            keep.push(event.payload.number);
            async move {
                let _leaving = leaving;
                // The second is at work when the completion of the first fails.
                pass(if event.payload.number == 2 && first { secs(3600) } else { ms(1) }).await;
            }
        }))
        .build()
        .unwrap();
    let events: Vec<Placed> = (1..=2).map(|number| placed(&format!("k{number}"), number)).collect();
    bus.publish_all_detached(events).await.unwrap();
    store.once("complete", Fault::Fail);
    bus.drain().await.unwrap_err();
    let calls = store.calls().all();
    let ended = calls.iter().rposition(|call| call == "handler ended").unwrap();
    let closed = calls.iter().position(|call| call == "close_session").unwrap();
    assert!(ended < closed, "{calls:?}");
    let left = deliveries(&bus).await;
    assert_eq!((left.len(), left[0].attempts), (1, 0), "the second goes back uncharged");
}

#[tokio::test(start_paused = true)]
async fn waking_looks_at_once_and_is_harmless_at_any_time() {
    let store = MemoryStore::new();
    let probe = Probe::new(store.clone());
    probe.set_capabilities(|capabilities| capabilities.reports_commits = false);
    let seen = Seen::default();
    let options = DispatcherOptions::default().poll_interval("1h").lease("3h");
    let bus = builder(probe).dispatcher(options).subscribe(keeping(&seen)).build().unwrap();
    bus.wake();
    bus.start().await.unwrap();
    pass(secs(5)).await;
    // Published by another process, which this one hears nothing of.
    let elsewhere = builder(store).subscribe(keeping(&Seen::default())).build().unwrap();
    elsewhere.publish_detached(note("a")).await.unwrap();
    pass(secs(60)).await;
    assert_eq!(seen.count(), 0);
    bus.wake();
    pass(secs(1)).await;
    assert_eq!(seen.count(), 1);
    bus.stop().await.unwrap();
    bus.wake();
}
