//! A bus that discovers its handlers finds handlers of catalogs and module contracts too. A program of its own: it finds
//! everything in it.

use relaybus::{
    Envelope, Event, HandlerContext, HandlerResult, MemoryStore, RelayBus, RelayBusBuilder, catalog, consume, consumer,
    consumers,
};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
struct OrderShipped {}

#[derive(Event, Serialize, Deserialize)]
#[event("user.registered.v1")]
struct UserRegistered {}

#[catalog]
enum OrderEvents {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
}

#[catalog]
enum UserEvents {
    UserRegistered(UserRegistered),
}

struct Shipping;

#[consumers(OrderEvents)]
impl OrderEventsHandlers for Shipping {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
    async fn on_order_shipped(&self, _: &Envelope<OrderShipped>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

#[consumer(OrderPlaced, id = "shipping.log")]
async fn log(_: OrderPlaced) {}

relaybus::module! {
    name: shipping,
    consumes: [OrderEvents],
    produces: [OrderEvents::{OrderShipped}],
    handlers: [Shipping, log],
}

fn builder() -> RelayBusBuilder<MemoryStore> {
    RelayBus::builder(MemoryStore::new()).provide(Shipping)
}

#[tokio::test]
async fn discovered_once_with_everything_checked() {
    // Named as well, which registers nothing twice.
    let bus = builder().discover_handlers().module::<shipping>().catalog(consume::<UserEvents>()).build().unwrap();
    let ids: Vec<_> = bus.handlers().iter().map(|handler| handler.id.to_string()).collect();
    assert_eq!(ids, ["Shipping.on_order_placed", "Shipping.on_order_shipped", "shipping.log"]);
    assert_eq!(
        bus.start().await.unwrap_err().to_string(),
        "Catalog events this service does not cover:
  - UserEvents.UserRegistered (user.registered.v1): consumed here, needs handler method on_user_registered
  - shipping: OrderEvents.OrderShipped (order.shipped.v1) has no route to a transport
A handler in a crate that nothing names is not linked into the program: write `use the_crate as _;` beside the bus"
    );
}
