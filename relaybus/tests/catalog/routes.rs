//! Routes of catalogs: the same as one route an event, and what is refused.

use std::time::Duration;

use relaybus::{Attempts, RetryOverrides, Route, consume, produce};

use super::*;

fn listed<S: EventStore>(bus: &RelayBus<S>) -> Vec<String> {
    bus.handlers().iter().map(|handler| format!("{} {}", handler.id, handler.event_type)).collect()
}

#[tokio::test]
async fn a_production_is_one_route_a_destination() {
    let wire = Arc::new(Wire::mapping_names());
    let retry = RetryOverrides { attempts: Some(Attempts::Limited(3)), ..RetryOverrides::NONE };
    let bus = builder()
        .transport(wire.clone())
        .route(
            Route::catalog(produce::<OrderEvents>().only::<(OrderPlaced, OrderCancelled)>(), "wire")
                .destination("orders")
                .retry(retry)
                .timeout(Duration::from_secs(10)),
        )
        // A plain route may share the destination, with the same settings.
        .route(Route::to("wire", "orders").event::<UserRegistered>().retry(retry).timeout(Duration::from_secs(10)))
        .route(Route::to("wire", "shipments").event::<OrderShipped>())
        .catalog(produce::<OrderEvents>())
        .build()
        .unwrap();
    assert_eq!(
        listed(&bus),
        [
            "relaybus.transport:wire:orders order.placed.v1",
            "relaybus.transport:wire:orders order.cancelled.v1",
            "relaybus.transport:wire:orders user.registered.v1",
            "relaybus.transport:wire:shipments order.shipped.v1",
        ]
    );
    let orders = &bus.handlers()[0];
    assert_eq!((orders.retry.attempts, orders.timeout), (Some(3), Some(Duration::from_secs(10))));
    bus.start().await.unwrap();
    bus.publish_all_detached([OrderPlaced::new("a", 1), OrderPlaced::new("a", 2)]).await.unwrap();
    bus.for_catalog::<OrderEvents>().publish_detached(OrderCancelled::new("a", 3)).await.unwrap();
    while wire.sent.all().len() < 3 {
        tokio::task::yield_now().await;
    }
    bus.stop().await.unwrap();
    assert_eq!(wire.sent.all(), ["orders order.placed.v1", "orders order.placed.v1", "orders order.cancelled.v1"]);
}

#[tokio::test]
async fn without_a_destination_each_event_goes_to_its_own_type() {
    let bus = builder()
        .transport(Arc::new(Wire::mapping_names()))
        .route(Route::catalog(produce::<OrderEvents>(), "wire"))
        .catalog(produce::<OrderEvents>())
        .build()
        .unwrap();
    assert_eq!(
        listed(&bus),
        [
            "relaybus.transport:wire:order.cancelled.v1 order.cancelled.v1",
            "relaybus.transport:wire:order.placed.v1 order.placed.v1",
            "relaybus.transport:wire:order.shipped.v1 order.shipped.v1",
        ]
    );
    bus.start().await.unwrap();
    bus.stop().await.unwrap();
}

#[tokio::test]
async fn a_route_of_fewer_events_does_not_cover_the_production() {
    let bus = builder()
        .transport(Arc::new(Wire::default()))
        .route(Route::catalog(produce::<OrderEvents>().only::<(OrderPlaced,)>(), "wire").destination("orders"))
        .catalog(produce::<OrderEvents>().only::<(OrderPlaced, OrderCancelled)>())
        .build()
        .unwrap();
    assert_eq!(
        refused(&bus).await,
        "Catalog events this service does not cover:\n  - OrderEvents.OrderCancelled (order.cancelled.v1): produced here, needs a route to a transport"
    );
}

fn refusal(builder: RelayBusBuilder<MemoryStore>) -> (&'static str, String) {
    let error = builder.transport(Arc::new(Wire::mapping_names())).build().unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn an_event_is_routed_once_to_a_destination() {
    let placed = || Route::catalog(produce::<OrderEvents>().only::<(OrderPlaced,)>(), "wire").destination("orders");
    let twice = "events that catalog routes send to one destination twice:\n  - order.placed.v1 of OrderEvents to `orders` of the transport `wire`: keep one of its routes";
    assert_eq!(
        refusal(builder().route(placed()).route(placed())),
        ("RELAYBUS_ROUTE_DUPLICATE_EVENT", twice.to_owned())
    );
    let plain = || Route::to("wire", "orders").event::<OrderPlaced>();
    for mixed in [builder().route(placed()).route(plain()), builder().route(plain()).route(placed())] {
        assert_eq!(refusal(mixed), ("RELAYBUS_ROUTE_DUPLICATE_EVENT", twice.to_owned()));
    }
    let (code, message) = refusal(builder().route(plain()).route(plain()));
    assert_eq!(code, "RELAYBUS_CONFIGURATION", "two plain routes fail as ever: {message}");
    let elsewhere = Route::to("wire", "archive").event::<OrderPlaced>();
    assert!(builder().transport(Arc::new(Wire::default())).route(placed()).route(elsewhere).build().is_ok());
}

#[test]
fn an_event_is_listed_once() {
    let twice = "lists the event `order.placed.v1` twice: keep one";
    let (code, message) = refusal(builder().catalog(consume::<OrderEvents>().only::<(OrderPlaced, OrderPlaced)>()));
    assert_eq!((code, message), ("RELAYBUS_CONFIGURATION", format!("a role of the catalog `OrderEvents` {twice}")));
    let role = produce::<OrderEvents>().only::<(OrderPlaced, OrderPlaced)>();
    let (code, message) = refusal(builder().route(Route::catalog(role, "wire")));
    assert_eq!((code, message), ("RELAYBUS_CONFIGURATION", format!("a route of the catalog `OrderEvents` {twice}")));
}
