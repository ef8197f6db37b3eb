//! The attribute with a catalog, on everything but its handler trait.

use relaybus::{Envelope, Event, HandlerContext, HandlerResult, catalog, consumers};
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

#[consumers(OrderEvents)]
impl Shipping {}

#[consumers(OrderEvents)]
impl Clone for Shipping {
    fn clone(&self) -> Self {
        Self
    }
}

#[consumers(OrderEvents)]
fn ship() {}

struct Of<T>(T);
#[consumers(OrderEvents)]
impl<T: Send + Sync + 'static> OrderEventsHandlers for Of<T> {
    #[consumer(OrderPlaced)]
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
    async fn on_order_shipped(&self, _: &Envelope<OrderShipped>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

fn main() {}
