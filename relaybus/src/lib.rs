//! A transactional outbox and event bus: events are written in the same transaction as the data they tell of, every handler
//! runs until it succeeds, in order where order is asked for, and once in effect.
//!
//! ```
//! use relaybus::{Envelope, Event, MemoryStore, RelayBus, Result, consumer, handlers};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Event, Serialize, Deserialize)]
//! #[event("order.placed.v1", key = order_id)]
//! struct OrderPlaced {
//!     order_id: String,
//! }
//!
//! #[consumer(OrderPlaced, id = "shipping.ship", retry(attempts = 5))]
//! async fn ship(event: &Envelope<OrderPlaced>) -> Result {
//!     println!("shipping {}", event.payload.order_id);
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result {
//! let bus = RelayBus::builder(MemoryStore::new()).source("orders").handlers(handlers![ship]).build()?;
//! bus.start().await?;
//! bus.transaction(async |tx| -> Result {
//!     // your own writes through `tx`, then:
//!     bus.publish(tx, OrderPlaced { order_id: "o-1".to_owned() }).await?;
//!     Ok(())
//! })
//! .await?;
//! bus.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # The way of an event
//!
//! 1. [`RelayBus::publish`] serializes the event once and writes it, with one delivery for each handler or route of its type,
//!    into the caller's transaction.
//! 2. The commit is the caller's. It wakes the dispatcher; the poll is the net below.
//! 3. The dispatcher claims due deliveries under a lease, runs the handlers, and renews the lease while they run.
//! 4. A handler that succeeds completes its delivery: grouped with others, or in the handler's own transaction when it is
//!    `transactional`. One that fails is tried again after a backoff with jitter, and ends in the dead letters.
//! 5. A worker that dies leaves an expired lease; another takes its deliveries over. Every write carries the token of its
//!    claim, so a worker that lost its lease changes nothing.
//!
//! # Guarantees, and their limits
//!
//! - *Atomic*: an event exists if and only if its transaction committed.
//! - *Not lost*: a committed event is delivered to every handler that was registered where it was published, until the handler
//!   succeeds or the delivery is in the dead letters.
//! - *At least once*; once in effect for a `transactional` handler that writes through its transaction.
//! - *In order* for events of one key and one handler: one at a time, in commit order. Nothing is said across keys or handlers.
//! - It does **not** make calls to other systems happen once: give them [`HandlerContext::idempotency_key`].
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | event | a typed fact with a stable name: [`Event`] |
//! | envelope | an event with its id, key, headers and times: [`Envelope`] |
//! | delivery | one event for one handler |
//! | attempt | one run of a delivery's handler |
//! | ordering key | what the order of events holds within: [`OrderingKey`] |
//! | run | consecutive deliveries of one handler and key, claimed together |
//! | session | one dispatcher's presence in the store |
//! | lease, token | the right to a delivery for a while, and the proof of it |
//! | route | a handler that sends to a broker: [`Route`] |
//! | dead letter | a delivery that gave up and waits for an operator |
//!
//! # Features
//!
//! - `schema` (off by default): JSON schemas and AsyncAPI documents of catalogs, and snapshots that tell which change breaks
//!   whom: `catalog::schema`. It needs `schemars` 1; switch it on in the crates that have the events.

extern crate self as relaybus;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
pub mod bus;
pub mod catalog;
mod clock;
mod context;
mod dispatch;
mod duration;
mod envelope;
mod error;
mod error_info;
pub mod event;
mod handler_id;
mod headers;
pub mod memory;
pub mod observe;
mod publish;
pub mod registry;
pub mod retry;
mod run;
pub mod store;
mod task;
mod text;
pub mod trace;
pub mod transport;

pub use bus::{
    BusTransaction, DispatcherOptions, Health, HealthStatus, RelayBus, RelayBusBuilder, RetentionOptions, StopResult,
    Subscribe, TransactionScope, UnroutedEvents,
};
pub use catalog::{Catalog, CatalogView, HandlerResult, MemberOf, Module, catalog, consume, produce};
pub use clock::{Clock, SystemClock, Timestamp, VirtualClock};
pub use context::HandlerContext;
pub use duration::{IntoDuration, parse_duration};
pub use envelope::{Envelope, RawPayload};
pub use error::{BoxError, Error, Result};
pub use error_info::ErrorInfo;
pub use event::{Event, EventId, EventType, KeyValue, OrderingKey};
pub use handler_id::HandlerId;
pub use headers::Headers;
pub use memory::MemoryStore;
pub use observe::{Interest, Observer, Stage};
pub use publish::{EventBatch, Publish, PublishAll};
pub use registry::{FromDelivery, HandlerOutput, Needs, Parts, State};
pub use relaybus_macros::{Event, catalog, consumer, consumers};
pub use relaybus_macros::{allow_external_call, lint_transactions, transaction};
pub use retry::{Attempts, RetryOverrides, RetryPolicy};
pub use run::HandlerCall;
pub use store::{AnyStore, AnyTransaction, EventStore};
pub use trace::{TraceContext, TraceSpan, Tracer, trace_context_of};
pub use transport::{Inbox, ReceiveOutcome, Received, Route, Transport};
