//! Arguments of the attribute with a catalog, each wrong in one way.

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

struct A;
#[consumers(OrderEvents, id = "a", prefx = "a", concurrency = 0)]
impl OrderEventsHandlers for A {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
    async fn on_order_shipped(&self, _: &Envelope<OrderShipped>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

struct B;
#[consumers(OrderEvents, OrderEvents, prefix = "a#b", timeout = "soon")]
impl OrderEventsHandlers for B {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
    async fn on_order_shipped(&self, _: &Envelope<OrderShipped>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

struct C;
#[consumers(OrderEvents, transactional, prefix = 7, retry)]
impl OrderEventsHandlers for C {
    async fn on_order_placed(&self, _: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
    async fn on_order_shipped(&self, _: &Envelope<OrderShipped>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

fn main() {}
