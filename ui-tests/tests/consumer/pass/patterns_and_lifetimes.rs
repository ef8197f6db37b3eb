//! Patterns as arguments, and lifetimes of the function's own.

use relaybus::memory::MemoryTransaction;
use relaybus::{Envelope, Event, HandlerContext, State, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Mailer {
    sender: String,
}

#[consumer(OrderPlaced)]
async fn patterns(State(mailer): State<Mailer>, Envelope { payload, .. }: Envelope<OrderPlaced>) -> Result<(), String> {
    let OrderPlaced {} = payload;
    Err(mailer.sender.clone())
}

#[consumer(OrderPlaced)]
async fn mutable(mut event: Envelope<OrderPlaced>, _: &HandlerContext) {
    event.key = None;
    drop(event);
}

#[consumer(OrderPlaced, transactional)]
async fn named<'a, 'b: 'a>(
    event: &'a Envelope<OrderPlaced>,
    context: &'b HandlerContext,
    tx: &'a mut MemoryTransaction,
) {
    std::future::ready((event, context)).await;
    std::future::ready(tx).await;
}

#[consumer(OrderPlaced)]
async fn elided(event: &'_ OrderPlaced, context: &'_ HandlerContext) -> relaybus::Result<()>
where
    OrderPlaced: Send,
{
    std::future::ready((event, context)).await;
    Ok(())
}
