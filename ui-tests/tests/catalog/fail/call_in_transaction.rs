//! A transactional handler of a catalog that waits for another service.

use relaybus::memory::MemoryTransaction;
use relaybus::{Envelope, Event, HandlerContext, HandlerResult, catalog, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[catalog]
pub enum OrderEvents {
    OrderPlaced(OrderPlaced),
}

struct Shipping {
    http: reqwest::Client,
}

#[consumers(OrderEvents)]
impl OrderEventsTxHandlers<MemoryTransaction> for Shipping {
    async fn on_order_placed(
        &self,
        _: &Envelope<OrderPlaced>,
        _: &mut MemoryTransaction,
        _: &HandlerContext,
    ) -> HandlerResult {
        self.http.get("https://carrier.example").await;
        Ok(())
    }
}

fn main() {}
