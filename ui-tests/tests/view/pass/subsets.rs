//! Views in spawned tasks, in generic code and over subsets of every kind.

use relaybus::catalog::CatalogView;
use relaybus::memory::MemoryTransaction;
use relaybus::{Event, EventStore, MemberOf, MemoryStore, RelayBus, Result, Route, catalog, consume, produce};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
struct OrderShipped {}

#[catalog]
enum Orders {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
}

#[catalog(of = Orders)]
enum Placements {
    OrderPlaced(OrderPlaced),
}

async fn place(orders: &CatalogView<Orders, MemoryStore>, tx: &mut MemoryTransaction) -> Result {
    let events: Vec<Orders> = vec![OrderPlaced {}.into(), OrderShipped {}.into()];
    orders.publish_all(tx, events).await?;
    orders.only::<(OrderPlaced, OrderShipped)>().publish(tx, OrderShipped {}).await?;
    orders.only::<(OrderShipped,)>().publish_all(tx, [OrderShipped {}]).await?;
    orders.only::<Placements>().publish(tx, OrderPlaced {}).key("a").await?;
    Ok(())
}

fn anywhere<S: EventStore, E: MemberOf<Orders>>(bus: &RelayBus<S>, event: E) -> impl Future + Send + 'static {
    let orders = bus.for_catalog::<Orders>();
    async move { orders.publish_detached(event).await }
}

#[test]
fn all_of_it_can_be_spawned() {
    fn is_task<T: Send + 'static>(task: T) {
        drop(task);
    }
    let bus = RelayBus::builder(MemoryStore::new())
        .catalog(consume::<Orders>().only::<Placements>())
        .catalog(produce::<Orders>().only::<(OrderShipped,)>())
        .build()
        .unwrap();
    is_task(anywhere(&bus, OrderPlaced {}));
    is_task(anywhere(&bus.any(), OrderShipped {}));
    is_task(async move {
        let orders = bus.for_catalog::<Orders>();
        bus.transaction(async |tx| -> Result { place(&orders, tx).await }).await
    });
    let route = Route::catalog(produce::<Orders>().only::<Placements>(), "kafka").wire_type::<OrderPlaced>("Order");
    assert!(format!("{route:?}").contains("Order"));
    assert!(matches!(Placements::from(OrderPlaced {}), Placements::OrderPlaced(_)));
}
