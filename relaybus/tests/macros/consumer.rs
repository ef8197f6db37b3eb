//! `#[consumer]` on functions: what is registered, and what it decodes.

use std::time::Duration;

use relaybus::registry::{Entry, Order, SetTimeout};
use relaybus::{
    Attempts, Envelope, Event, EventId, HandlerContext, Needs, RawPayload, RetryOverrides, State, Timestamp, consumer,
};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize, Debug, PartialEq)]
#[event("order.placed.v1", key = order_id)]
pub(crate) struct OrderPlaced {
    order_id: String,
}

struct Mailer;

const LINE_OF_PLAIN: u32 = line!() + 1;
#[consumer(OrderPlaced)]
async fn plain(event: OrderPlaced) {
    drop(event);
}

#[consumer(
    order = "replay",
    id = "shipping.ship",
    OrderPlaced,
    retry(max_delay = "5m", attempts = "infinite", factor = 3, initial_delay = "2s"),
    concurrency = 4,
    timeout = "30s"
)]
async fn ship(
    mailer: State<Mailer>,
    context: &HandlerContext,
    event: &Envelope<OrderPlaced>,
) -> Result<(), std::fmt::Error> {
    let _ = (mailer, context, event);
    Ok(())
}

#[consumer(OrderPlaced, retry(attempts = 5), timeout = false, companion = Never)]
async fn r#never() {}

/// Makes a consumer in a macro by example.
macro_rules! consumer_of {
    ($name:ident, $event:ty, $id:literal) => {
        #[consumer($event, id = $id)]
        async fn $name(event: $event) {
            drop(event);
        }
    };
}
consumer_of!(by_example, OrderPlaced, "by.example");

#[consumer(OrderPlaced, id = "off")]
#[cfg(any())]
async fn configured_away(event: OrderPlaced, missing: Missing) {}

fn entry(id: &str) -> Option<&'static Entry> {
    relaybus::__private::inventory::iter::<Entry>().find(|entry| entry.id == id)
}

#[test]
fn every_consumer_is_registered_under_its_id() {
    for id in
        ["macros::consumer::plain", "shipping.ship", "macros::consumer::never", "by.example", "macros::consumer::inner"]
    {
        let entry = entry(id).unwrap();
        assert_eq!(entry.event, "order.placed.v1", "{id}");
        assert!(!entry.transactional);
    }
    assert!(entry("off").is_none());

    #[consumer(OrderPlaced)]
    async fn inner(_: OrderPlaced) {}
}

#[test]
fn settings_are_the_attributes() {
    let ship = entry("shipping.ship").unwrap();
    let retry = RetryOverrides {
        attempts: Some(Attempts::Unlimited),
        initial_delay: Some(Duration::from_secs(2)),
        factor: Some(3.0),
        max_delay: Some(Duration::from_secs(300)),
    };
    assert_eq!(ship.options.retry, retry);
    assert_eq!(ship.options.timeout, Some(SetTimeout::After(Duration::from_secs(30))));
    assert_eq!(ship.options.concurrency, Some(4));
    assert_eq!(ship.options.order, Order::Replay);

    let never = entry("macros::consumer::never").unwrap();
    assert_eq!(never.options.retry.attempts, Some(Attempts::Limited(5)));
    assert_eq!(never.options.retry.initial_delay, None);
    assert_eq!(never.options.timeout, Some(SetTimeout::Never));

    assert_eq!(entry("by.example").unwrap().options, relaybus::registry::ConsumerOptions::NONE);
}

#[test]
fn needs_follow_the_arguments() {
    let ship = entry("shipping.ship").unwrap();
    let [Needs::State(state), Needs::Nothing, Needs::Event] = ship.needs else {
        panic!("unexpected needs {:?}", ship.needs)
    };
    assert_eq!(state.id(), std::any::TypeId::of::<Mailer>());
    assert!(entry("macros::consumer::never").unwrap().needs.is_empty());
}

#[test]
fn the_location_is_the_attributes() {
    let location = entry("macros::consumer::plain").unwrap().location;
    let (path, line) = location.rsplit_once(':').unwrap();
    assert!(path.ends_with("tests/macros/consumer.rs"), "{path}");
    assert_eq!(line, LINE_OF_PLAIN.to_string());
}

#[test]
fn the_function_stays_callable() {
    let future = plain(OrderPlaced { order_id: "o-1".into() });
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
}

#[test]
fn events_decode_once_for_all_handlers() {
    let [plain, ship] = [entry("macros::consumer::plain").unwrap(), entry("shipping.ship").unwrap()];
    assert!(std::ptr::fn_addr_eq(plain.decode, ship.decode));

    let payload = RawPayload::new(r#"{"order_id":"o-1"}"#).unwrap();
    let envelope =
        Envelope::new(EventId::new("e-1").unwrap(), OrderPlaced::TYPE, "test", payload, Timestamp::from_micros(0));
    let decoded = (plain.decode)(&envelope).unwrap();
    let decoded = decoded.downcast_ref::<Option<Envelope<OrderPlaced>>>().unwrap().as_ref().unwrap();
    assert_eq!(decoded.payload, OrderPlaced { order_id: "o-1".into() });

    let error = (plain.decode)(&envelope.with_payload(RawPayload::new("{}").unwrap())).unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_EVENT_VALIDATION");
}
