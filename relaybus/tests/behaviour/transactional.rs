//! Transactional handlers: their writes and the completion of their delivery commit together, or not at all.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use relaybus::memory::MemoryTransaction;
use relaybus::store::DeliveryStatus;
use relaybus::{
    AnyTransaction, Envelope, Error, HandlerContext, MemoryStore, RelayBus, Result, Subscribe, VirtualClock,
};
use tokio::sync::Semaphore;

use crate::kit::{
    Fault, Placed, Probe, Seen, builder, deliveries, limited, memory, ms, pass, placed, secs, soon, start_time,
};

/// A handler that writes its event's number in its transaction and then does what `then` says about the attempt.
fn writing<F>(rows: &Seen, then: F) -> Subscribe
where
    F: Fn(u32) -> BoxFuture<'static, Result> + Send + Sync + Clone + 'static,
{
    let rows = rows.clone();
    Subscribe::transactional::<Placed, _>(
        "writing",
        move |event: Envelope<Placed>, tx: &mut AnyTransaction, context: &HandlerContext| {
            let (rows, number, rest) = (rows.clone(), event.payload.number, then(context.attempt()));
            Box::pin(async move {
                let tx: &mut MemoryTransaction = tx.downcast_mut().expect("a transaction of the in-memory store");
                tx.on_commit(move || rows.push(number.to_string()));
                rest.await
            })
        },
    )
}

fn fine(_: u32) -> BoxFuture<'static, Result> {
    Box::pin(async { Ok(()) })
}

#[tokio::test(start_paused = true)]
async fn its_writes_take_effect_once_with_the_completion() {
    let rows = Seen::default();
    let bus = memory().subscribe(writing(&rows, fine)).build().unwrap();
    bus.start().await.unwrap();
    for number in 0..50 {
        bus.publish_detached(placed(&format!("k{}", number % 3), number)).await.unwrap();
    }
    rows.until(50).await;
    bus.stop().await.unwrap();
    assert!(deliveries(&bus).await.is_empty());
    for key in 0..3 {
        let of_key: Vec<u32> = rows.all().iter().map(|row| row.parse().unwrap()).filter(|n| n % 3 == key).collect();
        assert!(of_key.is_sorted(), "in the order of its key: {of_key:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_leaves_nothing_behind() {
    fn worse_and_worse(attempt: u32) -> BoxFuture<'static, Result> {
        Box::pin(async move {
            match attempt {
                1 => Err(Error::lifecycle("not today")),
                2 => std::future::pending().await,
                3 => panic!("boom"),
                _ => Ok(()),
            }
        })
    }
    let rows = Seen::default();
    let bus =
        memory().retry(soon(10)).handler_timeout("1s").subscribe(writing(&rows, worse_and_worse)).build().unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(placed("k", 1)).await.unwrap();
    for attempts in 1..=3 {
        while deliveries(&bus).await[0].attempts < attempts {
            pass(secs(1)).await;
        }
        assert!(attempts == 3 || rows.count() == 0);
    }
    rows.until(1).await;
    pass(secs(10)).await;
    assert_eq!(rows.all(), ["1"]);
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_has_no_effects() {
    fn never(_: u32) -> BoxFuture<'static, Result> {
        Box::pin(async { Err(Error::non_retryable("no")) })
    }
    let rows = Seen::default();
    let bus = memory().subscribe(writing(&rows, never)).build().unwrap();
    bus.publish_detached(placed("k", 1)).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!((deliveries(&bus).await[0].status, rows.count()), (DeliveryStatus::Dead, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_rolls_back_what_the_handler_wrote() {
    let (rows, runs) = (Seen::default(), Seen::<String>::default());
    let gate = Arc::new(Semaphore::new(0));
    let (held, count) = (gate.clone(), runs.clone());
    let waiting = move |_: u32| -> BoxFuture<'static, Result> {
        let (held, count) = (held.clone(), count.clone());
        Box::pin(async move {
            count.push("began");
            held.acquire().await.unwrap().forget();
            Ok(())
        })
    };
    let memory = MemoryStore::new();
    let cut_off = Probe::new(memory.clone());
    let clock = Arc::new(VirtualClock::starting_at(start_time()));
    let bus = RelayBus::builder(cut_off.clone())
        .shared_clock(clock.clone())
        .subscribe(writing(&rows, waiting))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(placed("k", 1)).await.unwrap();
    runs.until(1).await;
    // The store does not answer for longer than the lease: another worker takes over meanwhile.
    cut_off.always("turn", Fault::Fail);
    cut_off.always("settle", Fault::Fail);
    pass(secs(26)).await;
    gate.add_permits(1);
    pass(ms(1)).await;
    let other_rows = Seen::default();
    let other = RelayBus::builder(memory).shared_clock(clock).subscribe(writing(&other_rows, fine)).build().unwrap();
    pass(secs(10)).await;
    while other_rows.count() + rows.count() == 0 {
        other.drain().await.unwrap();
        pass(secs(1)).await;
    }
    pass(secs(60)).await;
    cut_off.heal("turn");
    cut_off.heal("settle");
    pass(secs(60)).await;
    assert_eq!(rows.count() + other_rows.count(), 1, "once in effect");
    assert_eq!(rows.count(), 1, "its lease was still good when it ended, and its commit needs no turn");
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_opens_no_transaction_costs_no_attempt() {
    let rows = Seen::default();
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).subscribe(writing(&rows, fine).retry(limited(1))).build().unwrap();
    bus.start().await.unwrap();
    store.always("begin", Fault::Fail);
    bus.publish_detached(placed("k", 1)).await.unwrap();
    pass(secs(45)).await;
    let record = deliveries(&bus).await.remove(0);
    assert_eq!(record.attempts, 0);
    assert_ne!(record.status, DeliveryStatus::Dead);
    let tries = store.calls().all().iter().filter(|call| *call == "begin").count();
    assert!((30..70).contains(&tries), "it waits longer from try to try: {tries}");
    store.heal("begin");
    rows.until(1).await;
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_database_is_told_the_handlers_timeout_as_its_budget() {
    let rows = Seen::default();
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).subscribe(writing(&rows, fine).timeout(secs(20))).build().unwrap();
    bus.publish_detached(placed("k", 1)).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(store.begun().all()[0].budget, Some(secs(20)), "not the budget of `bus.transaction`");
}
