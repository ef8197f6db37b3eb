//! Routes and subscriptions, on a broker in memory.

use relaybus::store::DeliveryStatus;
use relaybus::transport::Received;
use relaybus::{
    Attempts, Envelope, Error, EventId, EventType, MemoryStore, OrderingKey, RawPayload, ReceiveOutcome, RelayBus,
    RetryOverrides, Route, Subscribe,
};

use crate::kit::{
    Broker, Fault, Note, Placed, Probe, Seen, Shipped, builder, deliveries, limited, memory, ms, pass, placed, refusal,
    secs, shipped, start_time,
};

fn away() -> Error {
    Error::Transport {
        message: "the broker is away".to_owned(),
        code: "RELAYBUS_KAFKA_PUBLISH_TIMEOUT",
        retryable: true,
        source: None,
    }
}

/// A bus that sends orders and shipments to one topic.
fn routed(broker: &Broker) -> RelayBus<MemoryStore> {
    memory()
        .transport(broker.shared())
        .route(Route::to("kafka", "orders").event::<Placed>())
        .route(Route::to("kafka", "orders").event::<Shipped>())
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn all_routes_to_one_destination_are_one_handler_listed_once_a_type() {
    let broker = Broker::new("kafka");
    let bus = routed(&broker);
    let listed: Vec<(String, String)> =
        bus.handlers().iter().map(|h| (h.id.to_string(), h.event_type.to_string())).collect();
    let id = "relaybus.transport:kafka:orders".to_owned();
    assert_eq!(listed, [(id.clone(), "order.placed.v1".to_owned()), (id, "order.shipped.v1".to_owned())]);
    let health = bus.health().await;
    assert_eq!(health.handlers, 1);
}

#[tokio::test(start_paused = true)]
async fn the_events_of_a_key_are_sent_in_order_across_types_while_one_is_retried() {
    let broker = Broker::new("kafka");
    let bus = routed(&broker);
    for _ in 0..3 {
        broker.refuse(away());
    }
    bus.publish_detached(placed("a", 1)).await.unwrap();
    bus.publish_detached(shipped("a")).await.unwrap();
    bus.publish_detached(placed("a", 2)).await.unwrap();
    bus.publish_detached(placed("b", 1)).await.unwrap();
    bus.publish_detached(placed("x", 1)).without_key().await.unwrap();
    bus.start().await.unwrap();
    broker.sent().until(5).await;
    bus.stop().await.unwrap();
    let sent = broker.sent().all();
    assert!(sent.iter().all(|(destination, _)| destination == "orders"));
    let of_a: Vec<_> = sent
        .iter()
        .filter(|(_, event)| event.key.as_ref().is_some_and(|key| key.as_str() == "a"))
        .map(|(_, event)| event.event_type.as_str().to_owned() + event.payload.as_str())
        .collect();
    assert_eq!(
        of_a,
        [
            r#"order.placed.v1{"order_id":"a","number":1}"#,
            r#"order.shipped.v1{"order_id":"a"}"#,
            r#"order.placed.v1{"order_id":"a","number":2}"#
        ]
    );
    assert_eq!(broker.attempts().count(), 8);
    assert!(deliveries(&bus).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_route_is_retried_without_end_and_not_faster_than_its_cap() {
    let broker = Broker::new("kafka");
    let bus = routed(&broker);
    bus.start().await.unwrap();
    for _ in 0..40 {
        broker.refuse(away());
    }
    bus.publish_detached(placed("a", 1)).await.unwrap();
    broker.sent().until(1).await;
    assert_eq!(broker.attempts().count(), 41);
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_transport_can_never_send_is_buried_at_once() {
    let broker = Broker::new("kafka");
    let bus = routed(&broker);
    broker.refuse(Error::Transport {
        message: "the message is too large".to_owned(),
        code: "RELAYBUS_KAFKA_UNENCODABLE_EVENT",
        retryable: false,
        source: None,
    });
    broker.panic();
    bus.publish_detached(placed("a", 1)).await.unwrap();
    bus.publish_detached(placed("a", 2)).await.unwrap();
    bus.drain().await.unwrap();
    let records = deliveries(&bus).await;
    assert_eq!((records[0].status, records[0].attempts), (DeliveryStatus::Dead, 1));
    assert!(records[0].last_error.as_ref().unwrap().contains("RELAYBUS_KAFKA_UNENCODABLE_EVENT"));
    assert_eq!((records[1].status, records[1].attempts), (DeliveryStatus::Pending, 1), "a panic is a failed attempt");
    assert!(records[1].last_error.as_ref().unwrap().contains("the client panicked"));
}

#[tokio::test(start_paused = true)]
async fn a_send_has_thirty_seconds() {
    let broker = Broker::new("kafka");
    let bus = routed(&broker);
    bus.start().await.unwrap();
    broker.hang();
    bus.publish_detached(placed("a", 1)).await.unwrap();
    broker.attempts().until(1).await;
    pass(ms(29_500)).await;
    assert_eq!(deliveries(&bus).await[0].attempts, 0);
    pass(secs(1)).await;
    let record = deliveries(&bus).await.remove(0);
    assert_eq!(record.attempts, 1);
    assert!(record.last_error.unwrap().contains("within its timeout of 30s"));
    broker.sent().until(1).await;
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn routes_that_make_no_sense_are_refused_together() {
    let retry = RetryOverrides { attempts: Some(Attempts::Limited(3)), ..RetryOverrides::NONE };
    let with = |routes: Vec<Route>| {
        let builder = memory().transport(Broker::new("kafka").shared()).transport(Broker::new("kafka:eu").shared());
        routes.into_iter().fold(builder, relaybus::bus::RelayBusBuilder::route)
    };
    let orders = || Route::to("kafka", "orders").event::<Placed>();
    let one = "this bus cannot start:\n  - ";
    for (routes, fault) in [
        (
            vec![orders(), Route::to("kafka", "orders").event::<Shipped>().retry(retry)],
            "the routes of `relaybus.transport:kafka:orders` differ in retry or timeout: they share one queue a key, give them the same settings",
        ),
        (
            vec![orders(), Route::to("kafka", "orders").event::<Shipped>().timeout(secs(1))],
            "the routes of `relaybus.transport:kafka:orders` differ in retry or timeout: they share one queue a key, give them the same settings",
        ),
        (
            vec![orders(), orders()],
            "event `order.placed.v1` is routed to `relaybus.transport:kafka:orders` twice: keep one route",
        ),
        (
            vec![orders().event::<Placed>()],
            "event `order.placed.v1` is routed to `relaybus.transport:kafka:orders` twice: keep one route",
        ),
        (
            vec![Route::to("rabbitmq", "orders").event::<Placed>()],
            "route to `orders` needs the transport `rabbitmq`, which the bus does not have: add it with `.transport(..)`",
        ),
        (
            vec![Route::to("kafka", "orders")],
            "route `relaybus.transport:kafka:orders` has no events: add them with `.event::<E>()`",
        ),
        (
            vec![orders().timeout(std::time::Duration::ZERO)],
            "timeout of route `relaybus.transport:kafka:orders` is below 1ms: expected at least 1ms",
        ),
        (
            vec![Route::to("kafka", "eu:orders").event::<Placed>(), Route::to("kafka:eu", "orders").event::<Shipped>()],
            "two routes share the id `relaybus.transport:kafka:eu:orders` though they lead to different transports: rename a transport or a destination",
        ),
    ] {
        assert_eq!(refusal(with(routes)), format!("{one}{fault}"));
    }
    let several = refusal(with(vec![orders(), orders(), Route::to("nats", "x").event::<Placed>()]));
    assert_eq!(several.matches("\n  - ").count(), 2, "{several}");
    let same = with(vec![orders().retry(retry), Route::to("kafka", "orders").event::<Shipped>().retry(retry)]);
    assert!(same.build().is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_event_goes_to_its_handlers_and_to_each_of_its_routes() {
    let (kafka, rabbit) = (Broker::new("kafka"), Broker::new("rabbitmq"));
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let bus = memory()
        .transport(kafka.shared())
        .transport(rabbit.shared())
        .route(Route::to("kafka", "orders").event::<Placed>())
        .route(Route::to("kafka", "audit").event::<Placed>())
        .route(Route::to("rabbitmq", "orders").event::<Placed>())
        .subscribe(Subscribe::to("local", move |event: Envelope<Placed>, _| keep.handled(event.payload.number)))
        .build()
        .unwrap();
    bus.publish_detached(placed("a", 1)).await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 4);
    assert_eq!((kafka.sent().count(), rabbit.sent().count(), seen.count()), (2, 1, 1));
}

fn received(id: &str, text: &str) -> Envelope {
    let payload = RawPayload::new(format!(r#"{{ "text" : "{text}" }}"#)).unwrap();
    let id = EventId::new(id).unwrap();
    Envelope::new(id, EventType::new("note.v1").unwrap(), "elsewhere", payload, start_time())
}

#[tokio::test(start_paused = true)]
async fn a_received_event_is_stored_once_for_local_handlers_only() {
    let broker = Broker::new("kafka");
    let seen = Seen::<(String, String)>::default();
    let keep = seen.clone();
    let bus = memory()
        .transport(broker.shared())
        .subscription("kafka", ["payments", "refunds"])
        .route(Route::to("kafka", "notes").event::<Note>().event::<Placed>())
        .subscribe(Subscribe::to("notes", move |event: Envelope<Note>, _| {
            keep.handled((event.source.to_string(), event.payload.text))
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    assert_eq!(broker.subscriptions(), [["payments", "refunds"]]);
    let inbox = broker.inbox();
    let from = Received { destination: "payments".to_owned() };
    assert_eq!(inbox.receive(received("e-1", "hello"), from.clone()).await.unwrap(), ReceiveOutcome::Accepted);
    seen.until(1).await;
    for _ in 0..3 {
        assert_eq!(inbox.receive(received("e-1", "hello"), from.clone()).await.unwrap(), ReceiveOutcome::Duplicate);
    }
    let mut unknown = received("e-2", "x");
    unknown.event_type = EventType::new("unknown.v1").unwrap();
    assert_eq!(inbox.receive(unknown, from.clone()).await.unwrap(), ReceiveOutcome::Ignored);
    let mut only_routed = received("e-3", "x");
    only_routed.event_type = EventType::new("order.placed.v1").unwrap();
    assert_eq!(bus.receive(only_routed).await.unwrap(), ReceiveOutcome::Ignored);
    pass(secs(60)).await;
    bus.stop().await.unwrap();
    assert_eq!(seen.all(), [("elsewhere".to_owned(), "hello".to_owned())]);
    assert_eq!(broker.attempts().count(), 0, "what came in never goes out again");
}

#[tokio::test(start_paused = true)]
async fn a_received_event_that_can_never_be_stored_is_invalid() {
    let store = Probe::new(MemoryStore::new());
    let bus =
        builder(store.clone()).subscribe(Subscribe::to("notes", |_: Envelope<Note>, _| async {})).build().unwrap();
    let payload = |text: &str| RawPayload::stored(text);
    let mut cases: Vec<Envelope> = (0..7).map(|_| received("e-1", "x")).collect();
    cases[0].id = EventId::stored(String::new());
    cases[1].payload = payload("{\"text\":\"a\\u0000b\"}");
    cases[2].payload = payload("{\"text\":\"\\ud800\"}");
    cases[3].key = Some(OrderingKey::stored(String::new()));
    cases[4].source = "a\0b".into();
    cases[5].correlation_id = "a\0b".into();
    cases[6].causation_id = Some("a\0b".into());
    for case in cases {
        let shown = format!("{case:?}");
        let error = bus.receive(case).await.unwrap_err();
        assert_eq!(error.code(), "RELAYBUS_INVALID_ENVELOPE", "{shown}");
        assert!(error.to_string().starts_with("the received message is not a valid event: "), "{error}");
        assert!(!error.is_retryable());
    }
    assert_eq!(store.calls().count(), 0);
    for text in ["{", "", "\"\\ud800\"", "\"\\u0000\""] {
        assert_eq!(RawPayload::new(text).unwrap_err().code(), "RELAYBUS_INVALID_ENVELOPE", "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_makes_the_broker_keep_the_message() {
    let store = Probe::new(MemoryStore::new());
    let bus =
        builder(store.clone()).subscribe(Subscribe::to("notes", |_: Envelope<Note>, _| async {})).build().unwrap();
    store.once("append_alone", Fault::Fail);
    store.once("append_alone", Fault::LoseAnswer);
    for expected in [None, None, Some(ReceiveOutcome::Duplicate)] {
        assert_eq!(bus.receive(received("e-1", "x")).await.ok(), expected);
    }
    assert_eq!(bus.drain().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_received_payload_that_does_not_fit_is_stored_and_buried() {
    let bus = memory().subscribe(Subscribe::to("notes", |_: Envelope<Note>, _| async {})).build().unwrap();
    let mut event = received("e-1", "x");
    event.payload = RawPayload::new(r#"{"words":5}"#).unwrap();
    assert_eq!(bus.receive(event).await.unwrap(), ReceiveOutcome::Accepted);
    bus.drain().await.unwrap();
    let record = deliveries(&bus).await.remove(0);
    assert_eq!(record.status, DeliveryStatus::Dead);
    assert!(record.last_error.unwrap().contains("missing field `text`"));
}

#[tokio::test(start_paused = true)]
async fn the_payload_is_sent_byte_for_byte() {
    let broker = Broker::new("kafka");
    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
    #[event("raw.v1")]
    struct Raw(Box<serde_json::value::RawValue>);
    let text = r#"{ "z": 1.0e3,  "a":"\u0041\/", "n": 12345678901234567890123 }"#;
    let bus = memory().transport(broker.shared()).route(Route::to("kafka", "raw").event::<Raw>()).build().unwrap();
    bus.publish_detached(Raw(serde_json::value::RawValue::from_string(text.to_owned()).unwrap())).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(broker.sent().all()[0].1.payload.as_str(), text);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_a_routes_own_ends_in_the_dead_letters() {
    let broker = Broker::new("kafka");
    let bus = memory()
        .transport(broker.shared())
        .route(Route::to("kafka", "orders").event::<Placed>().retry(limited(2)))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    broker.refuse(away());
    broker.refuse(away());
    bus.publish_detached(placed("a", 1)).await.unwrap();
    bus.publish_detached(placed("a", 2)).await.unwrap();
    broker.sent().until(1).await;
    bus.stop().await.unwrap();
    let record = deliveries(&bus).await.remove(0);
    assert_eq!((record.status, record.attempts), (DeliveryStatus::Dead, 2));
    assert_eq!(broker.sent().all()[0].1.payload.as_str(), r#"{"order_id":"a","number":2}"#);
}
