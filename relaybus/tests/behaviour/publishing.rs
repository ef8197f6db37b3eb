//! Publishing: its options, what it refuses before the store is touched, and the transactions it writes in.

use std::sync::{Arc, OnceLock};

use relaybus::{
    DispatcherOptions, Envelope, Error, Event, EventBatch, EventId, MemoryStore, RawPayload, RelayBus, Result,
    Subscribe, UnroutedEvents,
};
use serde::{Deserialize, Serialize};

use crate::kit::{
    Logged, Note, Placed, Probe, Seen, Shipped, builder, deliveries, memory, ms, note, pass, placed, secs, shipped,
    soon, start_time,
};

/// A bus whose handlers keep the envelopes they get.
fn keeping(store: MemoryStore) -> (RelayBus<MemoryStore>, Seen<Envelope<RawPayload>>) {
    let seen = Seen::default();
    let (orders, shipments, notes) = (seen.clone(), seen.clone(), seen.clone());
    let bus = builder(store)
        .source("orders")
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, _| keep(&orders, &event)))
        .subscribe(Subscribe::to("shipments", move |event: Envelope<Shipped>, _| keep(&shipments, &event)))
        .subscribe(Subscribe::to("notes", move |event: Envelope<Note>, _| keep(&notes, &event)))
        .build()
        .unwrap();
    (bus, seen)
}

fn keep<E: Event>(seen: &Seen<Envelope<RawPayload>>, event: &Envelope<E>) -> std::future::Ready<()> {
    let payload = RawPayload::stored(serde_json::to_string(&event.payload).unwrap());
    seen.push(event.with_payload(payload));
    std::future::ready(())
}

async fn keys(bus: &RelayBus<MemoryStore>) -> Vec<Option<String>> {
    let mut keys = Vec::new();
    for delivery in deliveries(bus).await {
        keys.push(delivery.key.map(|key| key.as_str().to_owned()));
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn an_explicit_key_wins_over_the_events_own() {
    let (bus, _) = keeping(MemoryStore::new());
    bus.publish_detached(placed("own", 1)).await.unwrap();
    bus.publish_detached(placed("own", 1)).key("explicit").await.unwrap();
    bus.publish_detached(placed("own", 1)).without_key().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    bus.publish_detached(note("a")).key("explicit").await.unwrap();
    let expected = [Some("own"), Some("explicit"), None, None, Some("explicit")];
    assert_eq!(keys(&bus).await, expected.map(|key| key.map(str::to_owned)));
}

#[tokio::test(start_paused = true)]
async fn in_publish_all_an_explicit_key_applies_to_every_event_of_the_call() {
    let (bus, _) = keeping(MemoryStore::new());
    let mixed = || EventBatch::new().with(placed("a", 1)).with(shipped("b")).with(note("c"));
    bus.publish_all_detached(mixed()).await.unwrap();
    bus.publish_all_detached(mixed()).key("all").await.unwrap();
    let expected = [Some("a"), Some("b"), None, Some("all"), Some("all"), Some("all")];
    assert_eq!(keys(&bus).await, expected.map(|key| key.map(str::to_owned)));
}

#[tokio::test(start_paused = true)]
async fn an_explicit_key_serves_an_event_whose_own_is_not_usable() {
    let (bus, _) = keeping(MemoryStore::new());
    let error = bus.publish_detached(placed("", 1)).await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
    assert!(error.to_string().starts_with("an ordering key must not be empty"), "{error}");
    bus.publish_detached(placed("", 1)).key("explicit").await.unwrap();
    bus.publish_detached(placed("", 1)).without_key().await.unwrap();
    assert_eq!(keys(&bus).await, [Some("explicit".to_owned()), None]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_event_is_handled_when_its_time_has_come() {
    let (bus, seen) = keeping(MemoryStore::new());
    bus.start().await.unwrap();
    bus.publish_detached(note("later")).delay("5m").await.unwrap();
    pass(secs(299)).await;
    assert_eq!(seen.count(), 0);
    pass(secs(2)).await;
    assert_eq!(seen.count(), 1);
    bus.publish_detached(note("never")).delay(std::time::Duration::MAX).await.unwrap();
    pass(secs(60)).await;
    assert_eq!(seen.count(), 1);
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_envelope_carries_what_was_set() {
    let (bus, seen) = keeping(MemoryStore::new());
    let at = "2025-12-24T18:00:00Z".parse().unwrap();
    let id = bus
        .publish_detached(placed("o-1", 7))
        .id("mine")
        .header("tenant", "first")
        .header("region", "eu")
        .header("tenant", "acme")
        .correlation_id("flow-1")
        .causation_id("command-1")
        .occurred_at(at)
        .await
        .unwrap();
    assert_eq!(id, EventId::new("mine").unwrap());
    bus.drain().await.unwrap();
    let event = seen.all().remove(0);
    assert_eq!((event.id.as_str(), event.event_type.as_str(), &*event.source), ("mine", "order.placed.v1", "orders"));
    assert_eq!(event.headers.as_json(), r#"{"tenant":"acme","region":"eu"}"#);
    assert_eq!((&*event.correlation_id, event.causation_id.as_deref()), ("flow-1", Some("command-1")));
    assert_eq!((event.occurred_at, event.key.unwrap().as_str()), (at, "o-1"));
    assert_eq!(event.payload.as_str(), r#"{"order_id":"o-1","number":7}"#);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_set_has_its_default() {
    let (bus, seen) = keeping(MemoryStore::new());
    let id = bus.publish_detached(note("a")).await.unwrap();
    bus.drain().await.unwrap();
    let event = seen.all().remove(0);
    assert_eq!((&event.id, &*event.correlation_id, event.causation_id.as_deref()), (&id, id.as_str(), None));
    assert_eq!((event.occurred_at, event.headers.is_empty(), event.key), (start_time(), true, None));
}

#[tokio::test(start_paused = true)]
async fn the_settings_of_publish_all_apply_to_each_of_its_events() {
    let (bus, seen) = keeping(MemoryStore::new());
    let ids = bus
        .publish_all_detached([note("a"), note("b")])
        .header("tenant", "acme")
        .correlation_id("flow-1")
        .delay("1s")
        .await
        .unwrap();
    assert_eq!(bus.drain().await.unwrap(), 0, "both are delayed");
    pass(secs(1)).await;
    assert_eq!(bus.drain().await.unwrap(), 2);
    let events = seen.all();
    assert_eq!(events.iter().map(|event| event.id.clone()).collect::<Vec<_>>(), ids);
    assert!(
        events.iter().all(|event| event.headers.get("tenant") == Some("acme") && &*event.correlation_id == "flow-1")
    );
}

#[tokio::test(start_paused = true)]
async fn ids_made_by_the_bus_rise_and_can_be_replaced() {
    let (bus, _) = keeping(MemoryStore::new());
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(bus.publish_detached(note("a")).await.unwrap());
    }
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    let bus = memory().event_ids(|| EventId::new("fixed").unwrap()).build().unwrap();
    assert_eq!(bus.publish_detached(note("a")).await.unwrap().as_str(), "fixed");
}

#[tokio::test(start_paused = true)]
async fn an_id_is_stored_once_and_its_handlers_run_once() {
    let (bus, seen) = keeping(MemoryStore::new());
    for _ in 0..3 {
        assert_eq!(bus.publish_detached(note("a")).id("same").await.unwrap().as_str(), "same");
    }
    assert_eq!(bus.drain().await.unwrap(), 1);
    bus.publish_detached(note("changed")).id("same").await.unwrap();
    assert_eq!((bus.drain().await.unwrap(), seen.count()), (0, 1), "not even after it completed");
}

#[tokio::test(start_paused = true)]
async fn an_id_published_again_runs_only_handlers_it_never_had() {
    let store = MemoryStore::new();
    let (old, first) = keeping(store.clone());
    old.publish_detached(note("a")).id("same").await.unwrap();
    old.drain().await.unwrap();
    let second = Seen::<String>::default();
    let (again, added) = (second.clone(), second.clone());
    let new = builder(store)
        .subscribe(Subscribe::to("notes", move |_: Envelope<Note>, _| again.handled("notes")))
        .subscribe(Subscribe::to("added", move |_: Envelope<Note>, _| added.handled("added")))
        .build()
        .unwrap();
    assert_eq!(new.drain().await.unwrap(), 0, "a handler added later gets nothing of what was published before");
    new.publish_detached(note("a")).id("same").await.unwrap();
    new.drain().await.unwrap();
    assert_eq!((first.count(), second.all()), (1, vec!["added".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_event_nobody_handles_is_stored_with_one_warning_or_refused() {
    let log = Logged::capture();
    let bus = memory().build().unwrap();
    for _ in 0..3 {
        bus.publish_detached(note("a")).await.unwrap();
    }
    bus.publish_detached(placed("a", 1)).await.unwrap();
    assert_eq!(log.with("event_type=note.v1").len(), 1, "once a type");
    assert_eq!(log.with("no handler and no route").len(), 2);

    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).unrouted_events(UnroutedEvents::Reject).build().unwrap();
    let error = bus.publish_detached(note("a")).await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
    assert_eq!(
        error.to_string(),
        "event `note.v1` has no handler and no route: register one, or allow unrouted events"
    );
    assert_eq!(store.calls().count(), 0);
}

#[derive(Event, Serialize, Deserialize)]
#[event("amount.v1", validate = check_amount)]
struct Amount(i64);

fn check_amount(amount: &Amount) -> std::result::Result<(), String> {
    if amount.0 >= 0 { Ok(()) } else { Err(format!("{} is negative", amount.0)) }
}

#[derive(Event, Deserialize)]
#[event("unserializable.v1")]
struct Unserializable;

impl Serialize for Unserializable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no way"))
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_stored_fails_before_the_store_is_touched() {
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).build().unwrap();
    let mut tx = bus.begin().await.unwrap();
    let handle = tx.store_transaction();
    let bus = &bus;
    let mut refused: Vec<(&str, Error)> = Vec::new();
    let refuse = |what, result: Result<EventId>| (what, result.unwrap_err());
    refused.push(refuse("its validation refused it", bus.publish(handle, Amount(-5)).await));
    refused.push(refuse("it does not serialize as JSON", bus.publish(handle, Unserializable).await));
    refused.push(refuse("NUL", bus.publish(handle, note("a\0b")).await));
    refused.push(refuse("must not be empty", bus.publish(handle, placed("", 1)).await));
    refused.push(refuse("must not be empty", bus.publish(handle, note("a")).key("").await));
    refused.push(refuse("NUL", bus.publish(handle, note("a")).key("a\0").await));
    refused.push(refuse("65537 bytes", bus.publish(handle, note("a")).key("k".repeat(65_537)).await));
    refused.push(refuse("`soon` is not a duration", bus.publish(handle, note("a")).delay("soon").await));
    refused.push(refuse("header `x`", bus.publish(handle, note("a")).header("x", "\0").await));
    refused.push(refuse("header ``", bus.publish(handle, note("a")).header("", "x").await));
    refused.push(refuse("an event id has 1 to 1024 bytes", bus.publish(handle, note("a")).id("").await));
    refused.push(refuse("an event id has 1 to 1024 bytes", bus.publish(handle, note("a")).id("i".repeat(1025)).await));
    refused.push(refuse("a correlation id", bus.publish(handle, note("a")).correlation_id("\0").await));
    refused.push(refuse("a causation id", bus.publish(handle, note("a")).causation_id("").await));
    for (expected, error) in &refused {
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    assert_eq!(refused[0].1.code(), "RELAYBUS_EVENT_VALIDATION");
    assert_eq!(refused[1].1.code(), "RELAYBUS_EVENT_VALIDATION");
    assert_eq!(refused[2].1.code(), "RELAYBUS_EVENT_VALIDATION");
    assert!(refused[3..].iter().all(|(_, error)| error.code() == "RELAYBUS_CONFIGURATION"));
    let batch = EventBatch::new().with(note("good")).with(Amount(-1)).with(note("also good"));
    assert_eq!(bus.publish_all(handle, batch).await.unwrap_err().code(), "RELAYBUS_EVENT_VALIDATION");
    assert!(bus.publish_all(handle, EventBatch::new()).await.unwrap().is_empty());
    assert_eq!(store.calls().all(), ["begin"], "nothing was sent");

    bus.publish(handle, note("good")).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(store.calls().all(), ["begin", "append"], "and the transaction is as good as new");
}

#[tokio::test(start_paused = true)]
async fn publish_all_is_one_call_to_the_store() {
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).build().unwrap();
    let notes: Vec<Note> = (0..500).map(|number| note(&number.to_string())).collect();
    assert_eq!(bus.publish_all_detached(notes).await.unwrap().len(), 500);
    assert_eq!(store.calls().all(), ["append_alone"]);
}

#[tokio::test(start_paused = true)]
async fn a_publish_does_nothing_until_it_is_awaited() {
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).build().unwrap();
    drop(bus.publish_detached(note("a")).key("k"));
    assert_eq!(store.calls().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn libraries_publish_through_the_erased_bus() {
    let (bus, seen) = keeping(MemoryStore::new());
    let erased: RelayBus = bus.any();
    erased.transaction(async |tx| -> Result { erased.publish(tx, note("erased")).await.map(drop) }).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(seen.count(), 1);
    let other = keeping(MemoryStore::new()).0.any();
    let mut foreign = other.begin().await.unwrap();
    let error = erased.publish(foreign.store_transaction(), note("lost")).await.unwrap_err();
    assert!(error.to_string().contains("belongs to another"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_publishes_in_its_transaction_commits_with_its_completion() {
    let (seen, bus_of_handler) = (Seen::<String>::default(), Arc::new(OnceLock::<RelayBus>::new()));
    let (keep, its_bus) = (seen.clone(), bus_of_handler.clone());
    let bus = memory()
        .retry(soon(5))
        .subscribe(Subscribe::transactional::<Placed, _>("forward", move |event, tx, context| {
            let bus = its_bus.get().unwrap().clone();
            Box::pin(async move {
                bus.publish(tx, note(&format!("attempt {}", context.attempt()))).await?;
                drop(event);
                if context.attempt() < 3 { Err(Error::lifecycle("not yet")) } else { Ok(()) }
            })
        }))
        .subscribe(Subscribe::to("notes", move |event: Envelope<Note>, _| keep.handled(event.payload.text)))
        .build()
        .unwrap();
    bus_of_handler.set(bus.any()).unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(placed("a", 1)).await.unwrap();
    seen.until(1).await;
    bus.stop().await.unwrap();
    assert_eq!(seen.all(), ["attempt 3"], "failed attempts published nothing");
    assert!(deliveries(&bus).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn after_a_commit_the_bus_cannot_see_it_looks_at_25_100_and_250_milliseconds() {
    let store = Probe::new(MemoryStore::new());
    store.set_capabilities(|capabilities| capabilities.reports_commits = false);
    let bus = builder(store.clone()).subscribe(silent()).dispatcher(quiet()).build().unwrap();
    bus.start().await.unwrap();
    pass(secs(10)).await;
    let before = store.takes().count();
    let mut tx = bus.begin().await.unwrap();
    bus.publish(tx.store_transaction(), note("a")).await.unwrap();
    pass(secs(5)).await;
    let looks: Vec<u128> = store.takes().all()[before..].iter().map(|take| take.at.as_millis() - 10_000).collect();
    assert_eq!(looks, [25, 100, 250]);
    bus.publish(tx.store_transaction(), note("b")).delay("1h").await.unwrap();
    pass(secs(5)).await;
    assert_eq!(store.takes().count(), before + 3, "what is due later needs no look now");
    bus.stop().await.unwrap();
}

fn silent() -> Subscribe {
    Subscribe::to("notes", |_: Envelope<Note>, _| async {})
}

/// A dispatcher that does nothing by itself for an hour.
fn quiet() -> DispatcherOptions {
    DispatcherOptions::default().poll_interval("1h").lease("3h")
}

#[tokio::test(start_paused = true)]
async fn looks_are_counted_from_the_latest_publish() {
    let store = Probe::new(MemoryStore::new());
    store.set_capabilities(|capabilities| capabilities.reports_commits = false);
    let bus = builder(store.clone()).subscribe(silent()).dispatcher(quiet()).build().unwrap();
    bus.start().await.unwrap();
    pass(secs(10)).await;
    let before = store.takes().count();
    let mut tx = bus.begin().await.unwrap();
    bus.publish(tx.store_transaction(), note("a")).await.unwrap();
    pass(ms(110)).await;
    bus.publish(tx.store_transaction(), note("b")).await.unwrap();
    pass(secs(2)).await;
    let looks: Vec<u128> = store.takes().all()[before..].iter().map(|take| take.at.as_millis() - 10_000).collect();
    assert_eq!(looks, [25, 100, 135, 210, 360], "25, 100 and 250 ms after the second publish at 110 ms");

    let before = store.takes().count();
    for _ in 0..50 {
        bus.publish(tx.store_transaction(), note("c")).await.unwrap();
        pass(ms(10)).await;
    }
    let looks = store.takes().count() - before;
    assert!((10..=30).contains(&looks), "publishing all the time puts no look off: {looks} in half a second");
    bus.stop().await.unwrap();
}
