//! Which deliveries run when: per-key order, concurrency, strict and replayed runs, crashes, stores that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use relaybus::registry::Order;
use relaybus::store::{DeliveryQuery, DeliveryStatus};
use relaybus::{
    Clock, DispatcherOptions, Envelope, Error, HandlerContext, MemoryStore, RelayBus, Subscribe, VirtualClock,
};
use tokio::sync::Semaphore;

use crate::kit::{
    Fault, Logged, Note, Placed, Probe, Seen, Take, builder, crash_with_everything, deliveries, limited, memory, ms,
    note, pass, placed, secs, soon, start_time,
};

/// How many runs there are, and the most there ever were.
#[derive(Clone, Default)]
struct Gauge(Arc<(AtomicUsize, AtomicUsize)>);

impl Gauge {
    fn enter(&self) -> Entered {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        Entered(self.clone())
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

struct Entered(Gauge);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_the_concurrency_runs_at_once_in_all_and_of_each_handler() {
    let (all, notes, seen) = (Gauge::default(), Gauge::default(), Seen::<String>::default());
    let (in_all, of_notes, keep) = (all.clone(), notes.clone(), seen.clone());
    let (also_in_all, also_keep) = (all.clone(), seen.clone());
    let bus = memory()
        .dispatcher(DispatcherOptions::default().concurrency(6))
        .subscribe(
            Subscribe::to("notes", move |_: Envelope<Note>, _| {
                let (in_all, of_notes, keep) = (in_all.clone(), of_notes.clone(), keep.clone());
                async move {
                    let _running = (in_all.enter(), of_notes.enter());
                    pass(ms(10)).await;
                    keep.push("note");
                }
            })
            .concurrency(2),
        )
        .subscribe(Subscribe::to("orders", move |_: Envelope<Placed>, _| {
            let (in_all, keep) = (also_in_all.clone(), also_keep.clone());
            async move {
                let _running = in_all.enter();
                pass(ms(10)).await;
                keep.push("order");
            }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    for number in 0..60 {
        bus.publish_detached(note("n")).await.unwrap();
        bus.publish_detached(placed(&number.to_string(), number)).await.unwrap();
    }
    seen.until(120).await;
    bus.stop().await.unwrap();
    assert_eq!((all.most(), notes.most()), (6, 2));
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_its_head_and_other_keys_do_not() {
    let seen = Seen::<(String, u32)>::default();
    let keep = seen.clone();
    let bus = memory()
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, context: HandlerContext| {
            let Placed { order_id, number } = event.payload;
            let fails = order_id == "slow" && number == 1 && context.attempt() < 4;
            if !fails {
                keep.push((order_id, number));
            }
            async move { if fails { Err("not yet") } else { Ok(()) } }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    for number in 1..=3 {
        bus.publish_detached(placed("slow", number)).await.unwrap();
        bus.publish_detached(placed("fast", number)).await.unwrap();
        bus.publish_detached(placed("free", number)).without_key().await.unwrap();
    }
    seen.until(9).await;
    bus.stop().await.unwrap();
    let of = |key: &str| seen.all().iter().filter(|(k, _)| k == key).map(|(_, n)| *n).collect::<Vec<_>>();
    assert_eq!((of("slow"), of("fast")), (vec![1, 2, 3], vec![1, 2, 3]));
    assert_eq!(of("free").len(), 3);
    let last = seen.all().split_off(6);
    assert!(last.iter().all(|(key, _)| key == "slow"), "nobody else waited: {:?}", seen.all());
}

#[tokio::test(start_paused = true)]
async fn a_dead_head_releases_its_key_and_runs_after_it_when_requeued() {
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let broken = Arc::new(AtomicUsize::new(1));
    let state = broken.clone();
    let bus = memory()
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, _| {
            let fails = event.payload.number == 1 && state.load(Ordering::SeqCst) == 1;
            if !fails {
                keep.push(event.payload.number);
            }
            async move { if fails { Err(Error::non_retryable("broken")) } else { Ok(()) } }
        }))
        .build()
        .unwrap();
    for number in 1..=3 {
        bus.publish_detached(placed("k", number)).await.unwrap();
    }
    bus.drain().await.unwrap();
    assert_eq!(seen.all(), [2, 3]);
    broken.store(0, Ordering::SeqCst);
    let dead = deliveries(&bus).await.remove(0);
    bus.requeue(&[dead.id]).await.unwrap();
    bus.publish_detached(placed("k", 4)).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(seen.all(), [2, 3, 1, 4]);
}

/// The numbers that were handled while the completion of the first one had no answer.
async fn started_before_the_first_is_durable(order: Order) -> Vec<u32> {
    let store = Probe::new(MemoryStore::new());
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let bus = builder(store.clone())
        .subscribe(
            Subscribe::to("orders", move |event: Envelope<Placed>, _| keep.handled(event.payload.number)).order(order),
        )
        .build()
        .unwrap();
    let gate = Arc::new(Semaphore::new(0));
    store.always("complete", Fault::Wait(gate.clone()));
    let events: Vec<Placed> = (1..=5).map(|number| placed("k", number)).collect();
    bus.publish_all_detached(events).await.unwrap();
    bus.start().await.unwrap();
    seen.until(1).await;
    pass(secs(5)).await;
    let before = seen.all();
    store.heal("complete");
    gate.add_permits(1);
    seen.until(5).await;
    bus.stop().await.unwrap();
    assert_eq!(seen.all(), [1, 2, 3, 4, 5]);
    before
}

#[tokio::test(start_paused = true)]
async fn the_next_of_a_key_waits_for_the_completion_unless_the_handler_replays() {
    assert_eq!(started_before_the_first_is_durable(Order::Strict).await, [1]);
    assert_eq!(started_before_the_first_is_durable(Order::Replay).await, [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn attempts_used_up_by_crashes_bury_without_a_run() {
    let (store, clock) = (MemoryStore::new(), VirtualClock::starting_at(start_time()));
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let deadly =
        Subscribe::to("deadly", move |_: Envelope<Note>, context: HandlerContext| keep.handled(context.attempt()));
    let bus = RelayBus::builder(store.clone()).clock(clock).subscribe(deadly.retry(limited(3))).build().unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(crash_with_everything(&store, clock.now(), "deadly").await, 1);
        pass(secs(31)).await;
    }
    bus.start().await.unwrap();
    pass(secs(2)).await;
    let record = deliveries(&bus).await.remove(0);
    assert_eq!((record.status, record.attempts, seen.count()), (DeliveryStatus::Dead, 3, 0));
    let error = record.last_error.unwrap();
    assert!(error.contains("RELAYBUS_ATTEMPTS_EXHAUSTED") && error.contains("AttemptsExhaustedError"), "{error}");
    assert!(error.contains("ended 3 times without an answer, which uses up its 3 attempts"), "{error}");
    bus.requeue(&[record.id]).await.unwrap();
    seen.until(1).await;
    assert_eq!(seen.all(), [1], "requeued, it has all its attempts again");
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_crash_costs_an_attempt_and_the_lease_passes_to_another_worker() {
    let (store, clock) = (MemoryStore::new(), VirtualClock::starting_at(start_time()));
    let seen = Seen::<(u32, bool)>::default();
    let keep = seen.clone();
    let bus = RelayBus::builder(store.clone())
        .clock(clock)
        .subscribe(Subscribe::to("h", move |_: Envelope<Note>, context: HandlerContext| {
            keep.handled((context.attempt(), context.redelivered()))
        }))
        .build()
        .unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    crash_with_everything(&store, clock.now(), "h").await;
    bus.start().await.unwrap();
    pass(secs(29)).await;
    assert_eq!(seen.count(), 0, "the lease of the dead worker still stands");
    pass(secs(3)).await;
    assert_eq!(seen.all(), [(2, true)]);
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_ends_its_handlers_before_anything_of_theirs_runs_again() {
    let store = Probe::new(MemoryStore::new());
    let (gauge, seen) = (Gauge::default(), Seen::<(u32, bool)>::default());
    let (running, keep) = (gauge.clone(), seen.clone());
    let bus = builder(store.clone())
        .subscribe(Subscribe::to("orders", move |_: Envelope<Placed>, context: HandlerContext| {
            let (running, keep) = (running.clone(), keep.clone());
            async move {
                let _running = running.enter();
                keep.push((context.attempt(), context.redelivered()));
                pass(if context.attempt() == 1 { secs(3600) } else { ms(1) }).await;
            }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(placed("k", 1)).await.unwrap();
    seen.until(1).await;
    store.once("turn", Fault::SessionLost);
    pass(secs(60)).await;
    assert_eq!(seen.all(), [(1, false), (2, true)], "the lease ran out, which costs an attempt");
    assert_eq!(gauge.most(), 1);
    bus.stop().await.unwrap();
    assert!(deliveries(&bus).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_costs_no_attempt_and_no_dispatcher() {
    let store = Probe::new(MemoryStore::new());
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let bus = builder(store.clone())
        .subscribe(Subscribe::to("h", move |_: Envelope<Note>, context: HandlerContext| {
            keep.handled(context.attempt())
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    store.takes().until(1).await;
    for call in ["turn", "settle", "open_session"] {
        store.always(call, Fault::Fail);
    }
    bus.publish_detached(note("a")).await.unwrap();
    let before = store.takes().count();
    pass(secs(45)).await;
    let tries = store.takes().count() - before;
    assert!((30..=60).contains(&tries), "once a poll interval when it stays away: {tries}");
    for call in ["turn", "settle", "open_session"] {
        store.heal(call);
    }
    pass(secs(2)).await;
    assert_eq!(seen.all(), [1]);
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn lost_answers_are_asked_for_again_and_nothing_runs_twice() {
    let store = Probe::new(MemoryStore::new());
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let bus = builder(store.clone())
        .retry(soon(5))
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, context: HandlerContext| {
            keep.push(event.payload.number * 10 + context.attempt());
            let fails = event.payload.number == 2 && context.attempt() == 1;
            async move { if fails { Err("once") } else { Ok(()) } }
        }))
        .build()
        .unwrap();
    store.once("complete", Fault::LoseAnswer);
    store.once("settle", Fault::LoseAnswer);
    let events: Vec<Placed> = (1..=3).map(|number| placed("k", number)).collect();
    bus.publish_all_detached(events).await.unwrap();
    bus.start().await.unwrap();
    seen.until(4).await;
    pass(secs(60)).await;
    bus.stop().await.unwrap();
    assert_eq!(seen.all(), [11, 21, 22, 31]);
    assert!(deliveries(&bus).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_a_settlement_in_doubt() {
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone())
        .retry(soon(5))
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, context: HandlerContext| async move {
            match (event.payload.number, context.attempt()) {
                (1, 1) => Err("once"),
                (1, _) => Ok(()),
                // They end while the first one's settlement is in doubt; one fails then.
                (number, attempt) => {
                    pass(ms(20)).await;
                    if number == 3 && attempt == 1 { Err("later") } else { Ok(()) }
                }
            }
        }))
        .build()
        .unwrap();
    for _ in 0..3 {
        store.once("settle", Fault::LoseAnswer);
    }
    let events: Vec<Placed> = (1..=3).map(|number| placed(&format!("k{number}"), number)).collect();
    bus.publish_all_detached(events).await.unwrap();
    bus.start().await.unwrap();
    pass(secs(60)).await;
    bus.stop().await.unwrap();
    assert!(deliveries(&bus).await.is_empty());
    let takes = store.takes().all();
    let between: Vec<_> = takes.iter().filter(|take| (1..4).contains(&take.settlements)).collect();
    assert!(between.is_empty(), "turns while a settlement is in doubt: {between:?}");
    assert!(takes.iter().any(|take| take.settlements >= 4 && take.completed > 0), "{takes:?}");
}

#[tokio::test(start_paused = true)]
async fn deliveries_of_handlers_nobody_has_are_named_at_the_start_and_left_alone() {
    let store = MemoryStore::new();
    let old = builder(store.clone())
        .subscribe(Subscribe::to("billing", |_: Envelope<Note>, _| async {}))
        .subscribe(Subscribe::to("notes", |_: Envelope<Note>, _| async {}))
        .build()
        .unwrap();
    for _ in 0..10 {
        old.publish_detached(note("a")).await.unwrap();
    }
    let log = Logged::capture();
    let new = builder(store.clone())
        .subscribe(Subscribe::to("billing2", |_: Envelope<Note>, _| async {}))
        .subscribe(Subscribe::to("notes", |_: Envelope<Note>, _| async {}))
        .build()
        .unwrap();
    new.start().await.unwrap();
    pass(secs(120)).await;
    let warnings = log.with("a handler that this process does not have");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("handler=billing") && warnings[0].contains("deliveries=10"), "{warnings:?}");
    let page = new.list_deliveries(&DeliveryQuery::all()).await.unwrap();
    assert_eq!(page.deliveries.len(), 10);
    assert!(page.deliveries.iter().all(|d| d.attempts == 0 && d.status == DeliveryStatus::Pending));
    new.stop().await.unwrap();
    assert_eq!(old.drain().await.unwrap(), 10, "a process that has it still handles them");
}

#[tokio::test(start_paused = true)]
async fn two_buses_of_one_process_share_nothing_but_what_they_are_given() {
    let (one, other) = (Seen::<String>::default(), Seen::<String>::default());
    let make = |seen: &Seen, source: &str| {
        let seen = seen.clone();
        memory()
            .source(source)
            .subscribe(Subscribe::to("notes", move |event: Envelope<Note>, _| {
                seen.handled(format!("{} {}", event.source, event.payload.text))
            }))
            .build()
            .unwrap()
    };
    let (first, second) = (make(&one, "first"), make(&other, "second"));
    first.start().await.unwrap();
    second.start().await.unwrap();
    first.publish_detached(note("a")).await.unwrap();
    second.publish_detached(note("b")).await.unwrap();
    one.until(1).await;
    other.until(1).await;
    first.stop().await.unwrap();
    second.publish_detached(note("c")).await.unwrap();
    other.until(2).await;
    second.stop().await.unwrap();
    assert_eq!(
        (one.all(), other.all()),
        (vec!["first a".to_owned()], vec!["second b".to_owned(), "second c".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn two_dispatchers_of_one_store_share_the_work() {
    let store = MemoryStore::new();
    let seen = Seen::<(usize, u32)>::default();
    let workers: Vec<_> = (0..2)
        .map(|worker| {
            let keep = seen.clone();
            builder(store.clone())
                .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, context: HandlerContext| {
                    let keep = keep.clone();
                    async move {
                        assert_eq!(context.attempt(), 1);
                        pass(ms(5)).await;
                        keep.push((worker, event.payload.number));
                    }
                }))
                .build()
                .unwrap()
        })
        .collect();
    for worker in &workers {
        worker.start().await.unwrap();
    }
    for number in 0..400 {
        workers[0].publish_detached(placed(&format!("k{}", number % 40), number)).await.unwrap();
    }
    seen.until(400).await;
    for worker in &workers {
        worker.stop().await.unwrap();
    }
    let all = seen.all();
    assert_eq!(all.len(), 400, "each ran once");
    for key in 0..40 {
        let of_key: Vec<u32> = all.iter().map(|(_, n)| *n).filter(|n| n % 40 == key).collect();
        assert!(of_key.is_sorted() && of_key.len() == 10, "{of_key:?}");
    }
    let by_first = all.iter().filter(|(worker, _)| *worker == 0).count();
    assert!((1..400).contains(&by_first), "both worked: {by_first}");
}

/// Publishes `count` events so far from each other, and returns the turns taken meanwhile. The handler runs so many at once.
async fn turns_while_publishing(distance: std::time::Duration, count: usize, at_once: usize) -> Vec<Take> {
    let (store, seen) = (Probe::new(MemoryStore::new()), Seen::<String>::default());
    let keep = seen.clone();
    let bus = builder(store.clone())
        .subscribe(
            Subscribe::to("notes", move |_: Envelope<Note>, _| {
                keep.push("note");
                std::future::ready(())
            })
            .concurrency(at_once),
        )
        .build()
        .unwrap();
    bus.start().await.unwrap();
    pass(ms(50)).await;
    let before = store.takes().count();
    for number in 1..=count {
        bus.publish_detached(note("n")).await.unwrap();
        seen.until(number).await;
        pass(distance).await;
    }
    pass(ms(50)).await;
    let turns = store.takes().all().split_off(before);
    bus.stop().await.unwrap();
    turns
}

#[tokio::test(start_paused = true)]
async fn completions_and_claims_share_turns_while_events_come_close_to_each_other() {
    let turns = turns_while_publishing(ms(1), 40, 4).await;
    let alone = turns.iter().filter(|turn| turn.completed > 0 && turn.claim.is_none()).count();
    let shared = turns.iter().filter(|turn| turn.completed > 0 && turn.claim.is_some()).count();
    assert!(alone <= 3 && shared >= 36, "{alone} alone, {shared} shared: {turns:?}");
}

#[tokio::test(start_paused = true)]
async fn completions_wait_for_nothing_while_events_are_rare() {
    each_claim_completes_at_once(&turns_while_publishing(ms(20), 10, 4).await);
}

#[tokio::test(start_paused = true)]
async fn completions_of_a_handler_at_its_limit_wait_for_nothing() {
    each_claim_completes_at_once(&turns_while_publishing(ms(1), 40, 1).await);
}

fn each_claim_completes_at_once(turns: &[Take]) {
    assert!(turns.iter().any(|turn| turn.claimed > 0), "{turns:?}");
    for claim in turns.iter().filter(|turn| turn.claimed > 0) {
        assert!(turns.iter().any(|turn| turn.at == claim.at && turn.completed > 0), "{claim:?} of {turns:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_backlog_takes_one_turn_a_batch() {
    let (store, seen) = (Probe::new(MemoryStore::new()), Seen::<String>::default());
    let keep = seen.clone();
    let bus = builder(store.clone())
        .dispatcher(DispatcherOptions::default().concurrency(10))
        .subscribe(Subscribe::to("notes", move |_: Envelope<Note>, _| {
            keep.push("note");
            std::future::ready(())
        }))
        .build()
        .unwrap();
    for _ in 0..100 {
        bus.publish_detached(note("n")).await.unwrap();
    }
    bus.start().await.unwrap();
    seen.until(100).await;
    pass(ms(50)).await;
    bus.stop().await.unwrap();
    // The first claims, each of the others settles ten and claims for their slots, the last settles.
    let working = store.takes().all().into_iter().filter(|turn| turn.completed > 0 || turn.claimed > 0).count();
    assert!(working <= 12, "{:?}", store.takes().all());
    assert_eq!(store.takes().all().iter().map(|turn| turn.completed).sum::<usize>(), 100);
}
