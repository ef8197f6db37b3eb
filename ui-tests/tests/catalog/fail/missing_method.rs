//! A handler without some of its methods.

use relaybus::{Envelope, Event, HandlerContext, HandlerResult, catalog};
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
impl OrderEventsHandlers for Shipping {}

struct Ledger;
impl OrderEventsTxHandlers<MemoryTransaction> for Ledger {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &mut MemoryTransaction, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

use relaybus::memory::MemoryTransaction;

fn main() {}
