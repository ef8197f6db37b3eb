//! What a catalog knows of its events.

use relaybus::store::TypeRef;
use relaybus::{Catalog, Envelope, EventId, EventType, RawPayload, Timestamp};

use super::*;

fn envelope(event_type: &str, payload: &str) -> Envelope<RawPayload> {
    let payload = RawPayload::new(payload).unwrap();
    let event_type = EventType::new(event_type).unwrap();
    Envelope::new(EventId::new("e-1").unwrap(), event_type, "shop", payload, Timestamp::EPOCH)
}

#[test]
fn names_types_methods_and_wire_names() {
    assert_eq!((OrderEvents::NAME, UserEvents::NAME), ("OrderEvents", "users"));
    let events: Vec<_> =
        OrderEvents::EVENTS.iter().map(|event| (event.name, event.event_type, event.method, event.wire)).collect();
    assert_eq!(
        events,
        [
            ("OrderPlaced", "order.placed.v1", "on_order_placed", None),
            ("OrderCancelled", "order.cancelled.v1", "on_order_cancelled", None),
            ("OrderShipped", "order.shipped.v1", "on_order_shipped", Some("Order Shipped")),
        ]
    );
    assert_eq!(OrderEvents::EVENTS[0].rust_type, TypeRef::of::<OrderPlaced>());
    assert_eq!(OrderEvents::EVENTS[0].spelled, "OrderPlaced");
    assert_ne!(OrderEvents::EVENTS[0].hash, OrderEvents::EVENTS[1].hash);
}

#[test]
fn an_envelope_decodes_into_the_variant_of_its_type() {
    let event = OrderEvents::decode(&envelope("order.shipped.v1", r#"{"order_id":"o","number":3}"#)).unwrap();
    assert_eq!((event.id.as_str(), &*event.source), ("e-1", "shop"));
    assert_eq!(event.payload, OrderEvents::OrderShipped(OrderShipped::new("o", 3)));
    let from: OrderEvents = OrderPlaced::new("o", 1).into();
    assert_eq!(from, OrderEvents::OrderPlaced(OrderPlaced::new("o", 1)));
}

#[test]
fn what_does_not_decode_is_an_invalid_event() {
    let unknown = OrderEvents::decode(&envelope("user.registered.v1", "{}")).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "the payload of `user.registered.v1` is not valid: the catalog `OrderEvents` has no event of this type"
    );
    let invalid = OrderEvents::decode(&envelope("order.placed.v1", "{}")).unwrap_err();
    for error in [unknown, invalid] {
        assert_eq!(error.code(), "RELAYBUS_EVENT_VALIDATION");
        assert!(!error.is_retryable());
    }
}
