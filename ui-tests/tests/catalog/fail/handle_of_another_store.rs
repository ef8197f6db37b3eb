//! Transactional handlers that take what the store does not lend.

use relaybus::{Envelope, Event, HandlerContext, HandlerResult, catalog, consumers, handlers};
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

struct Ledger;

#[consumers(OrderEvents)]
impl OrderEventsTxHandlers<u32> for Ledger {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &mut u32, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
    async fn on_order_shipped(&self, _: &Envelope<OrderShipped>, _: &mut u32, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

fn list() -> relaybus::registry::HandlerList<relaybus::memory::Memory> {
    handlers![Ledger]
}

fn main() {}
