//! The in-memory transport, and a bus that sends and receives through it.
#![allow(clippy::unwrap_used, reason = "tests with helpers of their own")]

use std::sync::Arc;
use std::time::Duration;

use relaybus::bus::Subscribe;
use relaybus::memory::MemoryStore;
use relaybus::store::{DeliveryQuery, DeliveryStatus};
use relaybus::{
    Envelope, Event, EventId, EventType, Headers, RawPayload, ReceiveOutcome, RelayBus, Route, Timestamp, Transport,
    catalog, produce,
};
use relaybus_testing::fault::{Fault, FaultPlan, FaultyStore, Op};
use relaybus_testing::{FakeClock, InMemoryTransport, Recorder};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[event("order.placed.v1", key = order_id)]
struct OrderPlaced {
    order_id: String,
}

fn placed(order_id: &str) -> OrderPlaced {
    OrderPlaced { order_id: order_id.to_owned() }
}

#[tokio::test]
async fn a_route_rides_out_an_outage() {
    let clock = FakeClock::new("2026-01-01T00:00:00Z");
    let transport = InMemoryTransport::new("kafka");
    let bus = RelayBus::builder(MemoryStore::new())
        .source("shop")
        .clock(clock.clone())
        .transport(Arc::new(transport.clone()))
        .route(Route::to("kafka", "orders").event::<OrderPlaced>())
        .build()
        .unwrap();
    transport.fail_next_publishes(3);
    for order in ["o-1", "o-1", "o-2"] {
        bus.publish_detached(placed(order)).await.unwrap();
    }
    for _ in 0..10 {
        bus.drain().await.unwrap();
        clock.advance(Duration::from_secs(600)).await;
    }
    transport.wait_for_publishes(3).await;
    let keys: Vec<_> = transport.published().iter().map(|sent| sent.event.key.clone().unwrap().to_string()).collect();
    assert_eq!(keys.iter().filter(|key| *key == "o-1").count(), 2);
    assert_eq!(transport.published_to("orders").len(), 3);
    assert!(transport.published_to("elsewhere").is_empty());
}

#[tokio::test]
async fn a_refused_event_ends_in_the_dead_letters_of_the_bus() {
    let transport = InMemoryTransport::new("kafka");
    let bus = RelayBus::builder(MemoryStore::new())
        .source("shop")
        .transport(Arc::new(transport.clone()))
        .route(Route::to("kafka", "orders").event::<OrderPlaced>())
        .build()
        .unwrap();
    transport.refuse_next_publishes(1);
    bus.publish_detached(placed("o-1")).await.unwrap();
    bus.drain().await.unwrap();
    let dead = bus.list_deliveries(&DeliveryQuery::all().status(DeliveryStatus::Dead)).await.unwrap();
    assert_eq!((dead.deliveries.len(), transport.published().len()), (1, 0));
}

fn incoming(id: &str) -> Envelope<RawPayload> {
    let payload = RawPayload::new(r#"{ "order_id":"o-9", "n":1.00 }"#).unwrap();
    let mut event = Envelope::new(
        EventId::new(id).unwrap(),
        EventType::from_static("order.placed.v1"),
        "other",
        payload,
        Timestamp::from_micros(17),
    );
    event.headers = Headers::new([("z", "1"), ("a", "2")]).unwrap();
    event.causation_id = Some("cause".into());
    event
}

#[tokio::test]
async fn a_subscription_stores_once_and_hands_on_everything() {
    let transport = InMemoryTransport::new("kafka");
    let shipping = Recorder::<OrderPlaced>::new();
    let store = FaultyStore::new(MemoryStore::new(), FaultPlan::new());
    let faults = store.faults().clone();
    let bus = RelayBus::builder(store)
        .source("shop")
        .transport(Arc::new(transport.clone()))
        .subscription("kafka", ["orders"])
        .subscribe(Subscribe::to("shipping.ship", shipping.handler()))
        .build()
        .unwrap();
    assert_eq!(transport.deliver("orders", &incoming("e1"), 0).await.unwrap_err().code(), "RELAYBUS_CONFIGURATION");
    bus.start().await.unwrap();
    // The store is away for two tries, and loses the answer of the third: the message is repeated, the event is not.
    for fault in [Fault::Fail, Fault::LoseRequest, Fault::LoseAnswer] {
        faults.next(Op::AppendAlone, fault);
    }
    assert_eq!(transport.deliver("orders", &incoming("e1"), 3).await.unwrap(), [ReceiveOutcome::Duplicate]);
    assert_eq!(transport.deliver("orders", &incoming("e2"), 0).await.unwrap(), [ReceiveOutcome::Accepted]);
    shipping.wait_for(2).await;
    let got = shipping.handled();
    assert_eq!(got.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["e1", "e2"]);
    assert_eq!(got[0].payload, placed("o-9"));
    assert_eq!((got[0].headers.as_json(), got[0].causation_id.as_deref()), (r#"{"z":"1","a":"2"}"#, Some("cause")));
    assert_eq!((&*got[0].source, got[0].occurred_at), ("other", Timestamp::from_micros(17)));
    faults.next(Op::AppendAlone, Fault::Fail);
    assert!(transport.deliver("orders", &incoming("e3"), 0).await.is_err());
    bus.stop().await.unwrap();
    assert!(transport.is_closed() && !transport.is_ready());
}

#[tokio::test]
async fn readiness_and_closing() {
    let transport = InMemoryTransport::new("kafka");
    assert!(transport.is_ready());
    transport.set_ready(false);
    assert!(!transport.is_ready());
    transport.set_ready(true);
    transport.close().await.unwrap();
    transport.close().await.unwrap();
    let error = transport.publish("orders", &incoming("e1")).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

#[catalog]
enum OrderEvents {
    #[wire("Order Placed")]
    OrderPlaced(OrderPlaced),
}

/// A bus whose catalog gives its event a name on the wire.
fn naming(transport: &InMemoryTransport) -> relaybus::Result<RelayBus<MemoryStore>> {
    RelayBus::builder(MemoryStore::new())
        .source("shop")
        .transport(Arc::new(transport.clone()))
        .route(Route::catalog(produce::<OrderEvents>(), "kafka").destination("orders"))
        .build()
}

#[tokio::test]
async fn events_travel_under_the_names_that_a_catalog_gives_them() {
    let transport = InMemoryTransport::new("kafka");
    let placed_type = EventType::from_static("order.placed.v1");
    assert_eq!(transport.wire_name(&placed_type), "order.placed.v1");
    let bus = naming(&transport).unwrap();
    assert_eq!(transport.wire_name(&placed_type), "Order Placed");
    bus.publish_detached(placed("o-1")).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(transport.published_to("orders")[0].event_type, "order.placed.v1");

    // What arrives under the name is the event again.
    let seen = Recorder::<OrderPlaced>::new();
    let receiving = RelayBus::builder(MemoryStore::new())
        .source("other")
        .transport(Arc::new(transport.clone()))
        .subscription("kafka", ["orders"])
        .subscribe(Subscribe::to("seen", seen.handler()))
        .build()
        .unwrap();
    receiving.start().await.unwrap();
    assert_eq!(transport.deliver("orders", &incoming("e1"), 0).await.unwrap(), [ReceiveOutcome::Accepted]);
    seen.wait_for(1).await;
    assert_eq!(seen.handled()[0].event_type, "order.placed.v1");
    receiving.stop().await.unwrap();
}

#[tokio::test]
async fn wire_names_belong_to_one_bus_and_come_before_use() {
    let named = InMemoryTransport::new("kafka");
    let _bus = naming(&named).unwrap();
    let error = naming(&named).unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_WIRE_TYPES_UNSUPPORTED");
    assert!(error.to_string().contains("has the wire names of another bus"), "{error}");

    let used = InMemoryTransport::new("kafka");
    used.publish("orders", &incoming("e-1")).await.unwrap();
    let error = naming(&used).unwrap_err();
    assert!(error.to_string().contains("was used before it was given wire names"), "{error}");
}
