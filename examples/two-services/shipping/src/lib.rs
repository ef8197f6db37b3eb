//! The shipping service: it handles `OrderPlaced` and `OrderCancelled`, and publishes `OrderShipped`.

use std::path::Path;
use std::sync::Arc;

use contracts::{OrderCancelled, OrderEvents, OrderPlaced, OrderShipped};
use relaybus::{
    BoxError, DispatcherOptions, EventStore, RelayBus, RelayBusBuilder, Route, State, Transport, consumer, produce,
};
use relaybus_stores::SqliteStore;
use relaybus_stores::sqlite::SqliteTransaction;

type Result<T = (), E = BoxError> = std::result::Result<T, E>;

relaybus::module! {
    name: pub shipping,
    consumes: [OrderEvents::{OrderPlaced, OrderCancelled}],
    produces: [OrderEvents::{OrderShipped}],
    handlers: [ship, call_back],
}

/// Ships an order, unless it was cancelled before. Parcel, event and completed delivery commit together.
#[consumer(OrderPlaced, id = "shipping.ship", transactional)]
async fn ship(event: OrderPlaced, tx: &mut SqliteTransaction, bus: State<RelayBus<SqliteStore>>) -> Result {
    // The two handlers run independently of each other, so either may come first.
    let insert = "INSERT INTO parcels (order_id, status) VALUES (?, 'shipped') ON CONFLICT DO NOTHING";
    let inserted = sqlx::query(insert).bind(&event.order_id).execute(&mut **tx).await?;
    if inserted.rows_affected() == 1 {
        let events = bus.for_catalog::<OrderEvents>().only::<(OrderShipped,)>();
        events.publish(tx, OrderShipped { order_id: event.order_id, carrier: "post".to_owned() }).await?;
    }
    Ok(())
}

/// Calls a parcel back, or sees to it that it will not leave.
#[consumer(OrderCancelled, id = "shipping.call_back", transactional)]
async fn call_back(event: OrderCancelled, tx: &mut SqliteTransaction) -> Result {
    let upsert = "INSERT INTO parcels (order_id, status) VALUES (?, 'cancelled')
        ON CONFLICT (order_id) DO UPDATE SET status = 'cancelled'";
    sqlx::query(upsert).bind(event.order_id).execute(&mut **tx).await?;
    Ok(())
}

/// The bus of the service.
pub fn builder(store: SqliteStore, wire: Arc<dyn Transport>) -> RelayBusBuilder<SqliteStore> {
    RelayBus::builder(store)
        .source("shipping")
        .module::<shipping>()
        .transport(wire)
        .subscription("wire", ["orders"])
        .route(Route::catalog(produce::<OrderEvents>().only::<(OrderShipped,)>(), "wire").destination("shipments"))
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
        let store = SqliteStore::open(directory.join("shipping.db")).await?;
        let bus = builder(store, wire).build()?;
        // The service's own table, in the store's file and before a handler needs it.
        bus.store().setup().await?;
        let create = "CREATE TABLE IF NOT EXISTS parcels (order_id TEXT PRIMARY KEY, status TEXT NOT NULL) STRICT";
        bus.transaction(async |tx| -> Result {
            sqlx::query(create).execute(&mut **tx).await?;
            Ok(())
        })
        .await?;
        bus.start().await?;
        Ok(Self { bus })
    }

    /// How many parcels have this status.
    ///
    /// # Errors
    /// The database's.
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn count(&self, status: &str) -> Result<i64> {
        let query = "SELECT COUNT(*) FROM parcels WHERE status = ?";
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
