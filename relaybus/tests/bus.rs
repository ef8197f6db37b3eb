//! The bus end to end on the in-memory store.
#![allow(clippy::disallowed_methods, reason = "tests drive time and tasks themselves")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaybus::store::{DeliveryQuery, DeliveryStatus};
use relaybus::{DispatcherOptions, Envelope, Error, Event, MemoryStore, RelayBus, Result, RetryOverrides, Subscribe};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Event, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[event("order.placed.v1", key = order_id)]
struct OrderPlaced {
    order_id: String,
    number: u32,
}

fn placed(order_id: &str, number: u32) -> OrderPlaced {
    OrderPlaced { order_id: order_id.to_owned(), number }
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, u32)>>>, Arc<Notify>);

impl Seen {
    fn push(&self, event: &OrderPlaced) {
        self.0.lock().unwrap().push((event.order_id.clone(), event.number));
        self.1.notify_one();
    }
    fn all(&self) -> Vec<(String, u32)> {
        self.0.lock().unwrap().clone()
    }
    async fn until(&self, count: usize) {
        while self.0.lock().unwrap().len() < count {
            self.1.notified().await;
        }
    }
}

#[tokio::test]
async fn a_published_event_reaches_its_handler_after_the_commit() {
    let seen = Seen::default();
    let keep = seen.clone();
    let bus = RelayBus::builder(MemoryStore::new())
        .subscribe(Subscribe::to("log", move |event: Envelope<OrderPlaced>, _| {
            let keep = keep.clone();
            async move { keep.push(&event.payload) }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.transaction(async |tx| -> Result {
        bus.publish(tx, placed("a", 1)).await?;
        Ok(())
    })
    .await
    .unwrap();
    seen.until(1).await;
    let failed: Result = bus
        .transaction(async |tx| {
            bus.publish(tx, placed("a", 2)).await?;
            Err(Error::non_retryable("changed my mind"))
        })
        .await;
    assert!(failed.is_err());
    bus.publish_detached(placed("a", 3)).await.unwrap();
    seen.until(2).await;
    assert_eq!(seen.all(), [("a".to_owned(), 1), ("a".to_owned(), 3)]);
    let result = bus.stop().await.unwrap();
    assert!(result.graceful);
    let again = bus.stop().await.unwrap();
    assert_eq!(again, result);
}

#[tokio::test]
async fn failures_are_retried_and_then_buried_in_order() {
    let seen = Seen::default();
    let keep = seen.clone();
    let bus = RelayBus::builder(MemoryStore::new())
        .subscribe(
            Subscribe::to("flaky", move |event: Envelope<OrderPlaced>, context| {
                let keep = keep.clone();
                async move {
                    keep.push(&event.payload);
                    match event.payload.number {
                        1 if context.attempt() < 3 => Err(Error::lifecycle("not yet")),
                        2 => Err(Error::non_retryable("never")),
                        _ => Ok(()),
                    }
                }
            })
            .retry(RetryOverrides {
                initial_delay: Some(Duration::from_millis(1)),
                max_delay: Some(Duration::from_millis(2)),
                ..RetryOverrides::NONE
            }),
        )
        .dispatcher(DispatcherOptions::default().poll_interval("5ms"))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    let events: Vec<_> = (1..=3).map(|number| placed("k", number)).collect();
    bus.publish_all_detached(events).await.unwrap();
    seen.until(5).await;
    bus.stop().await.unwrap();
    let numbers: Vec<u32> = seen.all().into_iter().map(|(_, number)| number).collect();
    assert_eq!(numbers, [1, 1, 1, 2, 3]);
    let dead = bus.list_deliveries(&DeliveryQuery::all().status(DeliveryStatus::Dead)).await.unwrap();
    assert_eq!(dead.deliveries.len(), 1);
    assert!(dead.deliveries[0].last_error.as_ref().unwrap().contains("RELAYBUS_NON_RETRYABLE"));
}

#[tokio::test]
async fn thousands_of_events_of_many_keys_stay_in_order() {
    let seen = Seen::default();
    let keep = seen.clone();
    let bus = RelayBus::builder(MemoryStore::new())
        .subscribe(Subscribe::to("log", move |event: Envelope<OrderPlaced>, _| {
            let keep = keep.clone();
            async move { keep.push(&event.payload) }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    for number in 0..2000 {
        bus.publish_detached(placed(&format!("k{}", number % 7), number)).await.unwrap();
    }
    seen.until(2000).await;
    bus.stop().await.unwrap();
    for key in 0..7 {
        let of_key: Vec<u32> =
            seen.all().into_iter().filter(|(k, _)| *k == format!("k{key}")).map(|(_, number)| number).collect();
        assert!(of_key.is_sorted() && of_key.len() > 280, "{of_key:?}");
    }
}

#[tokio::test]
async fn panics_and_timeouts_fail_the_attempt_and_nothing_else() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let bus = RelayBus::builder(MemoryStore::new())
        .subscribe(
            Subscribe::to("bad", move |event: Envelope<OrderPlaced>, _| {
                counted.fetch_add(1, Ordering::SeqCst);
                async move {
                    match event.payload.number {
                        1 => panic!("boom"),
                        2 => std::future::pending().await,
                        _ => {}
                    }
                }
            })
            .timeout(Duration::from_millis(20))
            .retry(RetryOverrides { attempts: Some(relaybus::Attempts::Limited(1)), ..RetryOverrides::NONE }),
        )
        .build()
        .unwrap();
    for number in 1..=3 {
        bus.publish_detached(placed(&format!("k{number}"), number)).await.unwrap();
    }
    assert_eq!(bus.drain().await.unwrap(), 3);
    let dead = bus.list_deliveries(&DeliveryQuery::all()).await.unwrap();
    let errors: Vec<String> = dead.deliveries.iter().map(|d| d.last_error.clone().unwrap()).collect();
    assert_eq!(errors.len(), 2);
    assert!(errors[0].contains("boom"), "{errors:?}");
    assert!(errors[1].contains("RELAYBUS_HANDLER_TIMEOUT"), "{errors:?}");
}
