//! Input nobody should send: huge, odd and hostile, in every place that takes text.

use relaybus::store::{DeliveryId, DeliveryQuery, DeliveryStatus, Requeued};
use relaybus::{Envelope, HandlerId, MemoryStore, Route, Subscribe};

use crate::kit::{Broker, Note, Placed, Seen, deliveries, memory, note, placed};

#[tokio::test(start_paused = true)]
async fn a_payload_of_20_megabytes_travels_whole() {
    let (seen, broker) = (Seen::<usize>::default(), Broker::new("kafka"));
    let keep = seen.clone();
    let bus = memory()
        .transport(broker.shared())
        .route(Route::to("kafka", "notes").event::<Note>())
        .subscribe(Subscribe::to("notes", move |event: Envelope<Note>, _| keep.handled(event.payload.text.len())))
        .build()
        .unwrap();
    let text = "é\"\\\n".repeat(4 * 1024 * 1024);
    bus.publish_detached(note(&text)).await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 2);
    assert_eq!(seen.all(), [text.len()]);
    let sent = broker.sent().all().remove(0).1;
    assert_eq!(sent.decode::<Note>().unwrap().payload.text, text);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_headers_keep_their_order() {
    let seen = Seen::<(usize, bool)>::default();
    let keep = seen.clone();
    let bus = memory()
        .subscribe(Subscribe::to("notes", move |event: Envelope<Note>, _| {
            let ordered =
                event.headers.iter().enumerate().all(|(n, (name, value))| {
                    name == format!("header {n} \"'\n") && value == format!("{n}\u{1F600}\\")
                });
            keep.handled((event.headers.iter().count(), ordered))
        }))
        .build()
        .unwrap();
    let publish = (0..10_000).fold(bus.publish_detached(note("a")), |publish, n| {
        publish.header(format!("header {n} \"'\n"), format!("{n}\u{1F600}\\"))
    });
    publish.await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(seen.all(), [(10_000, true)]);
}

#[tokio::test(start_paused = true)]
async fn keys_of_64_kibibytes_order_and_one_byte_more_is_refused() {
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let bus = memory()
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, _| keep.handled(event.payload.number)))
        .build()
        .unwrap();
    let key = "k".repeat(64 * 1024 - 1);
    let (one, other) = (key.clone() + "1", key.clone() + "2");
    for number in 0..10 {
        bus.publish_detached(placed(if number % 2 == 0 { &one } else { &other }, number)).await.unwrap();
    }
    let error = bus.publish_detached(placed(&(key + "22"), 1)).await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
    bus.drain().await.unwrap();
    for parity in 0..2 {
        let of_key: Vec<u32> = seen.all().into_iter().filter(|number| number % 2 == parity).collect();
        assert!(of_key.is_sorted() && of_key.len() == 5, "no two keys of one beginning are mixed up: {of_key:?}");
    }
}

const ODD: [&str; 10] = [
    "it's",
    "\"quoted\"",
    "a\nb\r\tc",
    "'; DROP TABLE events; --",
    "$1 ? :name {} %s",
    "\\u0000",
    "\u{202E}right to left",
    "\u{1F600}\u{FFFF}\u{FEFF}",
    " ",
    "#handler#",
];

#[tokio::test(start_paused = true)]
async fn odd_texts_are_kept_as_they_are_wherever_they_stand() {
    let seen = Seen::<Vec<String>>::default();
    let keep = seen.clone();
    let bus = memory()
        .subscribe(
            Subscribe::to("notes '\" ; --", move |event: Envelope<Note>, _| {
                let key = event.key.as_ref().map(ToString::to_string).unwrap_or_default();
                let causation = event.causation_id.as_deref().unwrap_or_default().to_owned();
                let header = event.headers.get(&event.payload.text).unwrap_or_default().to_owned();
                let id = event.id.to_string();
                keep.push(vec![id, key, event.correlation_id.to_string(), causation, header, event.payload.text]);
                async { Err::<(), _>("fails") }
            })
            .retry(crate::kit::limited(1)),
        )
        .build()
        .unwrap();
    for odd in ODD {
        bus.publish_detached(note(odd))
            .id(odd)
            .key(odd)
            .correlation_id(odd)
            .causation_id(odd)
            .header(odd, odd)
            .await
            .unwrap();
    }
    bus.drain().await.unwrap();
    assert_eq!(seen.all(), ODD.map(|odd| vec![odd.to_owned(); 6]));
    for record in deliveries(&bus).await {
        assert_eq!(record.status, DeliveryStatus::Dead);
        let named: DeliveryId = record.id.to_string().parse().unwrap();
        assert_eq!(named, record.id, "its name reads back");
        assert_eq!(bus.requeue(&[named]).await.unwrap(), [Requeued::Requeued]);
    }
}

#[tokio::test(start_paused = true)]
async fn nul_is_refused_in_every_text_and_lone_surrogates_in_json() {
    let bus = memory().build().unwrap();
    let bus = &bus;
    let results = [
        bus.publish_detached(note("a\0b")).await,
        bus.publish_detached(note("a")).id("a\0b").await,
        bus.publish_detached(note("a")).key("a\0b").await,
        bus.publish_detached(note("a")).correlation_id("a\0b").await,
        bus.publish_detached(note("a")).causation_id("a\0b").await,
        bus.publish_detached(note("a")).header("a\0b", "x").await,
        bus.publish_detached(note("a")).header("x", "a\0b").await,
    ];
    for result in results {
        let error = result.unwrap_err();
        assert!(error.to_string().contains("NUL") && !error.to_string().contains('\0'), "{error}");
    }
    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
    #[event("raw.v1")]
    struct Raw(Box<serde_json::value::RawValue>);
    for text in [r#""\ud800""#, r#"{"\udc00":1}"#, r#"["\u0000"]"#, r#"{"a\u0000":1}"#] {
        let raw = Raw(serde_json::value::RawValue::from_string(text.to_owned()).unwrap());
        let error = bus.publish_detached(raw).await.unwrap_err();
        assert_eq!(error.code(), "RELAYBUS_EVENT_VALIDATION", "{text}");
    }
    assert_eq!(bus.statistics().await.unwrap().pending, 0);
}

#[tokio::test(start_paused = true)]
async fn fifty_thousand_events_for_five_handlers_are_one_publish() {
    let handlers = (0..5).map(|n| Subscribe::to(format!("h{n}"), |_: Envelope<Note>, _| async {}));
    let bus = handlers.fold(memory(), relaybus::bus::RelayBusBuilder::subscribe).build().unwrap();
    let events: Vec<Note> = (0..50_000).map(|_| note("a")).collect();
    assert_eq!(bus.publish_all_detached(events).await.unwrap().len(), 50_000);
    assert_eq!(bus.statistics().await.unwrap().pending, 250_000);
}

#[tokio::test(start_paused = true)]
async fn a_page_has_its_limits_and_an_unknown_handler_no_deliveries() {
    let bus = relaybus::RelayBus::builder(MemoryStore::new()).build().unwrap();
    for limit in [0, usize::MAX] {
        let mut query = DeliveryQuery::all().handler(HandlerId::stored("\0#".to_owned()));
        query.limit = limit;
        assert!(bus.list_deliveries(&query).await.unwrap().deliveries.is_empty());
    }
    for text in ["", "no-hash", "#", "handler#", "#id", "a\nb#id"] {
        assert_eq!(text.parse::<DeliveryId>().unwrap_err().code(), "RELAYBUS_CONFIGURATION", "{text}");
    }
}
