//! The orders service: it publishes `OrderPlaced` and `OrderCancelled`, and handles `OrderShipped`.

use std::path::Path;
use std::sync::Arc;

use contracts::{OrderCancelled, OrderEvents, OrderPlaced, OrderShipped};
use relaybus::catalog::CatalogRoute;
use relaybus::{
    BoxError, DispatcherOptions, EventStore, RelayBus, RelayBusBuilder, Route, Transport, consumer, produce,
};
use relaybus_stores::SqliteStore;
use relaybus_stores::sqlite::SqliteTransaction;

type Result<T = (), E = BoxError> = std::result::Result<T, E>;

relaybus::module! {
    name: pub orders,
    consumes: [OrderEvents::{OrderShipped}],
    produces: [OrderEvents::{OrderPlaced, OrderCancelled}],
    handlers: [mark_shipped],
}

/// An order that is on its way. One that was cancelled meanwhile stays cancelled.
#[consumer(OrderShipped, id = "orders.mark_shipped", transactional)]
async fn mark_shipped(event: OrderShipped, tx: &mut SqliteTransaction) -> Result {
    let update = "UPDATE orders SET status = 'shipped' WHERE id = ? AND status = 'placed'";
    sqlx::query(update).bind(event.order_id).execute(&mut **tx).await?;
    Ok(())
}

/// Where the events go. Without this route the service does not start.
pub fn route() -> CatalogRoute<OrderEvents> {
    Route::catalog(produce::<OrderEvents>().only::<(OrderPlaced, OrderCancelled)>(), "wire").destination("orders")
}

/// The bus of the service, but for its route.
pub fn builder(store: SqliteStore, wire: Arc<dyn Transport>) -> RelayBusBuilder<SqliteStore> {
    RelayBus::builder(store)
        .source("orders")
        .module::<orders>()
        .transport(wire)
        .subscription("wire", ["shipments"])
        .dispatcher(DispatcherOptions::default().poll_interval("100ms"))
}

/// The service.
#[derive(Clone, Debug)]
pub struct Service {
    bus: RelayBus<SqliteStore>,
}

impl Service {
    /// Starts it, with its data in `directory`.
    ///
    /// # Errors
    /// The store's, or what the boot check finds.
    ///
    /// # Cancel safety
    /// Dropping the future stops what was started.
    pub async fn start(directory: &Path, wire: Arc<dyn Transport>) -> Result<Self> {
        let store = SqliteStore::open(directory.join("orders.db")).await?;
        let bus = builder(store, wire).route(route()).build()?;
        // The service's own table, in the store's file and before a handler needs it.
        bus.store().setup().await?;
        let create = "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, status TEXT NOT NULL) STRICT";
        bus.transaction(async |tx| -> Result {
            sqlx::query(create).execute(&mut **tx).await?;
            Ok(())
        })
        .await?;
        bus.start().await?;
        Ok(Self { bus })
    }

    /// Places an order: its row and its event commit together.
    ///
    /// # Errors
    /// The database's.
    ///
    /// # Cancel safety
    /// Dropping the future places nothing, unless the commit was on its way.
    pub async fn place(&self, order_id: &str, product: &str) -> Result {
        // Publishes these two events and no others.
        let events = self.bus.for_catalog::<OrderEvents>().only::<(OrderPlaced, OrderCancelled)>();
        let event = OrderPlaced { order_id: order_id.to_owned(), product: product.to_owned() };
        self.bus
            .transaction(async |tx| -> Result {
                let insert = "INSERT INTO orders (id, status) VALUES (?, 'placed')";
                sqlx::query(insert).bind(order_id).execute(&mut **tx).await?;
                events.publish(tx, event).await?;
                Ok(())
            })
            .await
    }

    /// Cancels an order, shipped or not.
    ///
    /// # Errors
    /// The database's.
    ///
    /// # Cancel safety
    /// Dropping the future cancels nothing, unless the commit was on its way.
    pub async fn cancel(&self, order_id: &str) -> Result {
        let events = self.bus.for_catalog::<OrderEvents>();
        self.bus
            .transaction(async |tx| -> Result {
                let update = "UPDATE orders SET status = 'cancelled' WHERE id = ?";
                sqlx::query(update).bind(order_id).execute(&mut **tx).await?;
                events.publish(tx, OrderCancelled { order_id: order_id.to_owned() }).await?;
                Ok(())
            })
            .await
    }

    /// How many orders have this status.
    ///
    /// # Errors
    /// The database's.
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn count(&self, status: &str) -> Result<i64> {
        let query = "SELECT COUNT(*) FROM orders WHERE status = ?";
        Ok(sqlx::query_scalar(query).bind(status).fetch_one(&mut *self.bus.store().reader().await?).await?)
    }

    /// Stops it.
    ///
    /// # Errors
    /// As those of [`RelayBus::stop`].
    ///
    /// # Cancel safety
    /// The stop goes on when the future is dropped.
    pub async fn stop(&self) -> Result {
        self.bus.stop().await?;
        Ok(())
    }
}
