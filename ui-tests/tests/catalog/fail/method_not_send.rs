//! A method whose future stays on one thread.

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
        let shared = std::rc::Rc::new(1);
        std::future::ready(()).await;
        drop(shared);
        Ok(())
    }
    async fn on_order_shipped(&self, _: &Envelope<OrderShipped>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

fn main() {}
