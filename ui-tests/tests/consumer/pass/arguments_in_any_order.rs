//! Every argument a delivery can give, in any order.

use relaybus::AnyTransaction;
use relaybus::memory::MemoryTransaction;
use relaybus::{Envelope, Event, HandlerContext, State, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Mailer;

#[consumer(OrderPlaced)]
async fn nothing() {}

#[consumer(OrderPlaced)]
async fn payload(_: OrderPlaced) {}

#[consumer(OrderPlaced)]
async fn borrowed_payload(_: &OrderPlaced) {}

#[consumer(OrderPlaced)]
async fn envelope(_: Envelope<OrderPlaced>) {}

#[consumer(OrderPlaced, transactional)]
async fn tx_first(_: &mut MemoryTransaction, _: &HandlerContext, _: &Envelope<OrderPlaced>, _: State<Mailer>) {}

#[consumer(OrderPlaced, transactional)]
async fn any_tx(_: State<Mailer>, _: State<String>, _: &mut AnyTransaction, _: OrderPlaced) {}

#[consumer(OrderPlaced, transactional)]
async fn without_handle(_: &HandlerContext) {}
