//! The boot check: each row of the table of roles, modules, and every gap in one error before any I/O.

use relaybus::memory::MemoryTransaction;
use relaybus::{Route, Subscribe, catalog, consume, consumer, produce};

use super::*;

const GIVEN: &str =
    "\nThis bus has the handlers it was given: name more in `.handlers(handlers![..])`, or call `.discover_handlers()`";

fn handle<E: Event>(builder: RelayBusBuilder<MemoryStore>, id: &str) -> RelayBusBuilder<MemoryStore> {
    builder.subscribe(Subscribe::to(id, |_: Envelope<E>, _| async {}))
}

fn send<E: Event>(builder: RelayBusBuilder<MemoryStore>, destination: &str) -> RelayBusBuilder<MemoryStore> {
    builder.route(Route::to("wire", destination).event::<E>())
}

fn with_wire() -> RelayBusBuilder<MemoryStore> {
    builder().transport(Arc::new(Wire::default()))
}

async fn starts(builder: RelayBusBuilder<MemoryStore>) {
    let bus = builder.build().unwrap();
    bus.start().await.unwrap();
    bus.stop().await.unwrap();
}

#[tokio::test]
async fn a_bare_catalog_needs_a_handler_or_a_route() {
    starts(handle::<UserRegistered>(with_wire(), "users").catalog(catalog::<UserEvents>())).await;
    starts(send::<UserRegistered>(with_wire(), "users").catalog(catalog::<UserEvents>())).await;
    let bus = handle::<OrderPlaced>(builder(), "placed").catalog(catalog::<OrderEvents>()).build().unwrap();
    assert_eq!(
        refused(&bus).await,
        format!(
            "Catalog events without a handler or route:
  - OrderEvents.OrderCancelled (order.cancelled.v1): expected handler method on_order_cancelled
  - OrderEvents.OrderShipped (order.shipped.v1): expected handler method on_order_shipped{GIVEN}"
        )
    );
}

#[tokio::test]
async fn a_consumed_event_needs_a_handler_and_a_route_does_not_count() {
    starts(handle::<UserRegistered>(with_wire(), "users").catalog(consume::<UserEvents>())).await;
    let bus = send::<UserRegistered>(with_wire(), "users").catalog(consume::<UserEvents>()).build().unwrap();
    assert_eq!(
        refused(&bus).await,
        format!(
            "Catalog events this service does not cover:
  - users.UserRegistered (user.registered.v1): consumed here, needs handler method on_user_registered{GIVEN}"
        )
    );
}

#[tokio::test]
async fn a_produced_event_needs_a_route_and_a_handler_does_not_count() {
    starts(send::<UserRegistered>(with_wire(), "users").catalog(produce::<UserEvents>())).await;
    let bus = handle::<UserRegistered>(with_wire(), "users").catalog(produce::<UserEvents>()).build().unwrap();
    assert_eq!(
        refused(&bus).await,
        "Catalog events this service does not cover:
  - users.UserRegistered (user.registered.v1): produced here, needs a route to a transport; a local handler does not deliver it to other services"
    );
}

#[tokio::test]
async fn subsets_and_several_roles_of_one_catalog() {
    let covered = |builder| {
        send::<OrderCancelled>(send::<OrderPlaced>(handle::<OrderShipped>(builder, "shipped"), "orders"), "orders")
    };
    let roles = |builder: RelayBusBuilder<MemoryStore>| {
        builder
            .catalog(produce::<OrderEvents>().only::<(OrderPlaced, OrderCancelled)>())
            .catalog(consume::<OrderEvents>().only::<(OrderShipped,)>())
    };
    starts(roles(covered(with_wire()))).await;
    starts(covered(with_wire()).catalog(catalog::<OrderEvents>().only::<Fulfilment>())).await;
    // Both roles for one event, and the same role twice: each gap once.
    let bus = roles(handle::<OrderPlaced>(with_wire(), "placed"))
        .catalog(consume::<OrderEvents>().only::<Fulfilment>())
        .catalog(catalog::<UserEvents>())
        .build()
        .unwrap();
    assert_eq!(
        refused(&bus).await,
        format!(
            "Catalog events this service does not cover:
  - OrderEvents.OrderPlaced (order.placed.v1): produced here, needs a route to a transport; a local handler does not deliver it to other services
  - OrderEvents.OrderCancelled (order.cancelled.v1): produced here, needs a route to a transport
  - OrderEvents.OrderShipped (order.shipped.v1): consumed here, needs handler method on_order_shipped
  - users.UserRegistered (user.registered.v1): expected handler method on_user_registered{GIVEN}"
        )
    );
}

#[tokio::test]
async fn nothing_is_touched_before_the_check() {
    let wire = Arc::new(Wire::default());
    let bus = builder()
        .transport(wire.clone())
        .subscription("wire", ["orders"])
        .catalog(consume::<OrderEvents>())
        .build()
        .unwrap();
    refused(&bus).await;
    assert_eq!(wire.subscribed.all(), Vec::<String>::new());
    assert!(bus.stop().await.unwrap().graceful, "the bus was left idle");

    // What was missing is given to another bus, with the same store and transport.
    let again = RelayBus::builder(bus.store().clone()).transport(wire.clone()).subscription("wire", ["orders"]);
    let again = handle::<OrderShipped>(handle::<OrderCancelled>(again, "cancelled"), "shipped");
    starts(handle::<OrderPlaced>(again, "placed").catalog(consume::<OrderEvents>())).await;
    assert_eq!(wire.subscribed.all(), ["orders"]);
}

#[consumer(OrderPlaced, id = "shipping.ship")]
async fn ship(_: OrderPlaced) {}

#[consumer(OrderCancelled, id = "shipping.cancel", transactional)]
async fn cancel(_: OrderCancelled, _: &mut MemoryTransaction) {}

relaybus::module! {
    name: shipping,
    consumes: [OrderEvents::{OrderPlaced, OrderCancelled}],
    produces: [OrderEvents::{OrderShipped}],
    handlers: [ship, cancel],
}

#[tokio::test]
async fn a_module_brings_its_handlers_and_its_contract() {
    let bus = send::<OrderShipped>(with_wire(), "shipments").module::<shipping>().build().unwrap();
    let ids: Vec<_> = bus.handlers().iter().map(|handler| handler.id.to_string()).collect();
    assert_eq!(ids, ["relaybus.transport:wire:shipments", "shipping.cancel", "shipping.ship"]);
    bus.start().await.unwrap();
    bus.stop().await.unwrap();
    let bus = builder().module::<shipping>().module::<shipping>().catalog(consume::<UserEvents>()).build().unwrap();
    assert_eq!(
        refused(&bus).await,
        format!(
            "Catalog events this service does not cover:
  - users.UserRegistered (user.registered.v1): consumed here, needs handler method on_user_registered
  - shipping: OrderEvents.OrderShipped (order.shipped.v1) has no route to a transport{GIVEN}"
        )
    );
}
