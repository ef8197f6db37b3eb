//! Wire names: of catalogs and of routes, and how they may clash.

use relaybus::{Route, produce};

use super::*;

fn route() -> relaybus::catalog::CatalogRoute<OrderEvents> {
    Route::catalog(produce::<OrderEvents>(), "wire").destination("orders")
}

fn pair(event: &str, name: &str) -> (String, String) {
    (event.to_owned(), name.to_owned())
}

#[test]
fn a_route_adds_to_the_names_of_the_catalog_and_goes_before_them() {
    let wire = Arc::new(Wire::mapping_names());
    builder().transport(wire.clone()).route(route().wire_type::<OrderPlaced>("Order Placed")).build().unwrap();
    assert_eq!(wire.names(), [pair("order.placed.v1", "Order Placed"), pair("order.shipped.v1", "Order Shipped")]);
    let wire = Arc::new(Wire::mapping_names());
    builder().transport(wire.clone()).route(route().wire_type::<OrderShipped>("Sent")).build().unwrap();
    assert_eq!(wire.names(), [pair("order.shipped.v1", "Sent")]);
}

#[test]
fn names_of_events_that_no_route_sends_are_not_declared() {
    let wire = Arc::new(Wire::default());
    let placed = Route::catalog(produce::<OrderEvents>().only::<(OrderPlaced,)>(), "wire");
    builder().transport(wire.clone()).route(placed).build().unwrap();
    assert_eq!(wire.names(), []);
    let names = relaybus::catalog::wire_types::<OrderEvents>();
    assert_eq!(names.len(), 1);
    assert_eq!((names[0].event_type.as_str(), names[0].name.as_str()), ("order.shipped.v1", "Order Shipped"));
}

/// The refusal, and that it changed nothing.
fn refusal(builder: RelayBusBuilder<MemoryStore>, wire: Wire) -> (&'static str, String) {
    let wire = Arc::new(wire);
    let error = builder.transport(wire.clone()).build().unwrap_err();
    assert_eq!(wire.names(), []);
    (error.code(), error.to_string())
}

#[test]
fn a_transport_without_names_refuses_them() {
    let (code, _) = refusal(builder().route(route()), Wire::default());
    assert_eq!(code, "RELAYBUS_WIRE_TYPES_UNSUPPORTED");
}

#[test]
fn a_route_names_only_events_that_it_routes() {
    let role = produce::<OrderEvents>().only::<(OrderPlaced,)>();
    let named = Route::catalog(role, "wire").wire_type::<OrderCancelled>("Order Cancelled");
    assert_eq!(
        refusal(builder().route(named), Wire::mapping_names()),
        (
            "RELAYBUS_CATALOG_UNKNOWN_EVENT",
            "a route of the catalog `OrderEvents` gives wire names to events that it does not route:\n  - order.cancelled.v1 (wire name `Order Cancelled`)".to_owned()
        )
    );
}

#[test]
fn names_do_not_clash() {
    let placed = || Route::catalog(produce::<OrderEvents>().only::<(OrderPlaced,)>(), "wire");
    let two_names = builder()
        .route(placed().destination("a").wire_type::<OrderPlaced>("A"))
        .route(placed().destination("b").wire_type::<OrderPlaced>("B"));
    let one_name = builder().route(route().wire_type::<OrderPlaced>("Order Shipped"));
    let of_a_type = builder().route(route().wire_type::<OrderPlaced>("order.cancelled.v1"));
    let of_a_plain_route = builder()
        .route(route().wire_type::<OrderPlaced>("user.registered.v1"))
        .route(Route::to("wire", "users").event::<UserRegistered>());
    for (clashing, message) in [
        (two_names, "order.placed.v1 has two wire names, `A` and `B`"),
        (one_name, "order.placed.v1 and order.shipped.v1 would both travel as `Order Shipped`"),
        (of_a_type, "order.placed.v1 and order.cancelled.v1 would both travel as `order.cancelled.v1`"),
        (of_a_plain_route, "order.placed.v1 and user.registered.v1 would both travel as `user.registered.v1`"),
    ] {
        assert_eq!(
            refusal(clashing, Wire::mapping_names()),
            ("RELAYBUS_WIRE_TYPE_COLLISION", format!("wire names of the transport `wire` clash:\n  - {message}"))
        );
    }
}

#[test]
fn one_name_in_two_places_is_fine() {
    let wire = Arc::new(Wire::mapping_names());
    let placed =
        || Route::catalog(produce::<OrderEvents>().only::<(OrderPlaced,)>(), "wire").wire_type::<OrderPlaced>("A");
    builder()
        .transport(wire.clone())
        .route(placed().destination("a"))
        .route(placed().destination("b"))
        .build()
        .unwrap();
    assert_eq!(wire.names(), [pair("order.placed.v1", "A")]);
}
