//! A method with a slip in its name.

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
impl OrderEventsHandlers for Shipping {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
    async fn on_order_shiped(&self, _: &Envelope<OrderShipped>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

fn main() {}
