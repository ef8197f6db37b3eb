//! `bus.transaction`: commit, rollback, its time budget, and reruns at an isolation level.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use relaybus::store::{EventStore, IsolationLevel};
use relaybus::{BoxError, Envelope, Error, MemoryStore, RelayBus, Result, Subscribe};

use crate::kit::{Note, Probe, Seen, builder, memory, ms, note, pass, secs};

async fn stored<S: EventStore>(bus: &RelayBus<S>) -> u64 {
    bus.statistics().await.unwrap().pending
}

fn notes() -> Subscribe {
    Subscribe::to("notes", |_: Envelope<Note>, _| async {})
}

#[tokio::test(start_paused = true)]
async fn it_commits_on_ok_and_rolls_back_on_err() {
    let bus = memory().subscribe(notes()).build().unwrap();
    let value = bus
        .transaction(async |tx| -> Result<u32> {
            bus.publish(tx, note("a")).await?;
            Ok(5)
        })
        .await
        .unwrap();
    assert_eq!((value, stored(&bus).await), (5, 1));
    let failed: Result<(), BoxError> = bus
        .transaction(async |tx| {
            bus.publish(tx, note("b")).await?;
            Err("changed my mind".into())
        })
        .await;
    assert_eq!((failed.unwrap_err().to_string().as_str(), stored(&bus).await), ("changed my mind", 1));
}

#[tokio::test(start_paused = true)]
async fn it_rolls_back_when_dropped_or_panicking() {
    let bus = memory().subscribe(notes()).build().unwrap();
    let hanging = bus.transaction(async |tx| -> Result {
        bus.publish(tx, note("a")).await?;
        std::future::pending().await
    });
    tokio::select! {
        _ = hanging => unreachable!(),
        () = pass(ms(100)) => {}
    }
    assert_eq!(stored(&bus).await, 0);
    let panicking = {
        let bus = bus.clone();
        #[allow(clippy::disallowed_methods, reason = "the panic must stay in a task of its own")]
        tokio::spawn(async move {
            bus.transaction(async |tx| -> Result {
                bus.publish(tx, note("a")).await?;
                panic!("boom")
            })
            .await
        })
    };
    assert!(panicking.await.unwrap_err().is_panic());
    assert_eq!(stored(&bus).await, 0);
}

#[tokio::test(start_paused = true)]
async fn it_has_five_seconds_unless_told_otherwise() {
    for (timeout, lasts, expected) in [
        (None, 4_900, Ok(())),
        (None, 5_100, Err(5_000)),
        (Some("1s"), 1_100, Err(1_000)),
        (Some("0s"), 900_000, Ok(())),
    ] {
        let store = Probe::new(MemoryStore::new());
        let mut builder = builder(store.clone()).subscribe(notes());
        if let Some(timeout) = timeout {
            builder = builder.transaction_timeout(timeout);
        }
        let bus = builder.build().unwrap();
        let result: Result = bus
            .transaction(async |tx| {
                bus.publish(tx, note("a")).await?;
                pass(ms(lasts)).await;
                Ok(())
            })
            .await;
        match expected {
            Ok(()) => assert!(result.is_ok()),
            Err(budget) => {
                let error = result.unwrap_err();
                assert_eq!(error.code(), "RELAYBUS_TRANSACTION_TIMEOUT");
                assert_eq!(
                    error.to_string(),
                    format!(
                        "the transaction ran past its budget of {:?} and was rolled back: move slow calls out of it",
                        ms(budget)
                    )
                );
            }
        }
        assert_eq!(stored(&bus).await, u64::from(expected.is_ok()), "nothing of an overrun is kept");
        let told = store.begun().all()[0].budget;
        assert_eq!(
            told,
            Some(timeout.map_or(secs(5), |t| relaybus::parse_duration(t).unwrap())).filter(|b| !b.is_zero())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_serialization_failure_reruns_all_of_it() {
    let store = Probe::new(MemoryStore::new());
    store.set_capabilities(|capabilities| capabilities.isolation_levels = true);
    let bus = builder(store.clone()).subscribe(notes()).build().unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let (work_bus, counted) = (bus.clone(), runs.clone());
    let work = async move |tx: &mut relaybus::memory::MemoryTransaction| -> Result<u32> {
        work_bus.publish(tx, note("a")).await?;
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        if run < 3 { Err(Error::SerializationFailure { source: None }) } else { Ok(run) }
    };
    assert_eq!(bus.transaction_at(IsolationLevel::Serializable, 3, work.clone()).await.unwrap(), 3);
    assert_eq!(stored(&bus).await, 1, "the runs that failed left nothing");
    assert!(store.begun().all().iter().all(|options| options.isolation == Some(IsolationLevel::Serializable)));

    runs.store(0, Ordering::SeqCst);
    let error = bus.transaction_at(IsolationLevel::Serializable, 2, work.clone()).await.unwrap_err();
    assert!(matches!(error, Error::SerializationFailure { .. }));
    assert_eq!(runs.load(Ordering::SeqCst), 2, "at most as often as it was told");

    let error = bus.transaction_at(IsolationLevel::Serializable, 0, work).await.unwrap_err();
    assert_eq!(error.to_string(), "`attempts` of a transaction is 0, expected at least 1");
}

#[tokio::test(start_paused = true)]
async fn other_failures_are_not_rerun_and_a_store_may_have_no_levels() {
    let store = Probe::new(MemoryStore::new());
    store.set_capabilities(|capabilities| capabilities.isolation_levels = true);
    let bus = builder(store.clone()).build().unwrap();
    let failing = async |_: &mut relaybus::memory::MemoryTransaction| -> Result { Err(Error::non_retryable("no")) };
    assert_eq!(
        bus.transaction_at(IsolationLevel::Serializable, 5, failing).await.unwrap_err().code(),
        "RELAYBUS_NON_RETRYABLE"
    );
    assert_eq!(store.begun().count(), 1);

    let bus = memory().build().unwrap();
    let error = bus.transaction_at(IsolationLevel::Serializable, 5, failing).await.unwrap_err();
    assert_eq!(error.to_string(), "the memory store has no isolation levels: use `transaction`");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_by_hand_commits_wakes_or_rolls_back() {
    let seen = Seen::<String>::default();
    let keep = seen.clone();
    let bus = memory()
        .subscribe(Subscribe::to("notes", move |event: Envelope<Note>, _| keep.handled(event.payload.text)))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    let mut tx = bus.begin().await.unwrap();
    bus.publish(tx.store_transaction(), note("committed")).await.unwrap();
    pass(secs(5)).await;
    assert_eq!(seen.count(), 0, "not before the commit");
    tx.commit().await.unwrap();
    seen.until(1).await;
    let mut tx = bus.begin().await.unwrap();
    bus.publish(tx.store_transaction(), note("rolled back")).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = bus.begin().await.unwrap();
    bus.publish(tx.store_transaction(), note("dropped")).await.unwrap();
    drop(tx);
    pass(secs(5)).await;
    assert_eq!(seen.all(), ["committed"]);
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn its_future_can_be_spawned_whatever_the_error_type() {
    let bus = memory().subscribe(notes()).build().unwrap();
    let service = bus.clone();
    #[allow(clippy::disallowed_methods, reason = "that it may be spawned is what this test is for")]
    let spawned = tokio::spawn(async move {
        let text = String::from("spawned");
        let published = service
            .transaction(async |tx| -> Result<(), BoxError> {
                service.publish(tx, note(&text)).await?;
                Ok(())
            })
            .await;
        published?;
        service
            .transaction_at(IsolationLevel::Serializable, 2, async |tx| -> Result<(), BoxError> {
                service.publish(tx, note(&text)).await?;
                Ok(())
            })
            .await
    });
    let refused = spawned.await.unwrap().unwrap_err();
    assert_eq!(refused.to_string(), "the memory store has no isolation levels: use `transaction`");
    assert_eq!(stored(&bus).await, 1);
}
