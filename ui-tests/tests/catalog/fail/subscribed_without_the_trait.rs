//! Handlers without the trait, and in a transaction of another store.

use relaybus::{Envelope, Event, HandlerContext, HandlerResult, MemoryStore, RelayBusBuilder, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[catalog]
pub enum OrderEvents {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
}

struct Shipping;

fn build(builder: RelayBusBuilder<MemoryStore>) {
    let options = relaybus::catalog::CatalogOptions::new;
    let builder = builder.subscribe_catalog::<OrderEvents, _>(std::sync::Arc::new(Shipping), options());
    let _ = builder.subscribe_catalog_in_transaction::<OrderEvents, _, u32>(std::sync::Arc::new(Ledger), options());
}

struct Ledger;
impl OrderEventsTxHandlers<u32> for Ledger {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &mut u32, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
    async fn on_order_shipped(&self, _: &Envelope<OrderShipped>, _: &mut u32, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

fn main() {}
