//! A user's library of the 2021 edition, in which relaybus is called `bus`, the macros are given that path, and all
//! lints are on.

#![forbid(unsafe_code, missing_docs)]
#![deny(
    warnings,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::nursery
)]

use bus::memory::{Memory, MemoryTransaction};
use bus::registry::HandlerList;
use bus::{catalog, consumer, consumers, handlers, Envelope, Event, HandlerContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An order was placed.
#[derive(Clone, Debug, PartialEq, Eq, Event, Serialize, Deserialize)]
#[event("order.placed.v1", key = order_id, validate = OrderPlaced::check, crate = bus)]
pub struct OrderPlaced {
    /// The order.
    pub order_id: u64,
}

impl OrderPlaced {
    fn check(&self) -> Result<(), String> {
        if self.order_id > 0 {
            Ok(())
        } else {
            Err("an order has a number".to_owned())
        }
    }
}

/// Ships an order.
///
/// # Errors
/// When it is late.
#[consumer(OrderPlaced, id = "renamed.ship", transactional, retry(attempts = 5, factor = 1.5), crate = bus)]
pub async fn ship(
    event: &Envelope<OrderPlaced>,
    tx: &mut MemoryTransaction,
    context: &HandlerContext,
) -> Result<(), std::io::Error> {
    std::future::ready(()).await;
    if context.attempt() > 3 {
        return Err(std::io::Error::other(format!("{} in {tx:?}", event.id)));
    }
    Ok(())
}

/// Bills orders.
#[derive(Debug)]
pub struct Billing {
    /// What an order costs.
    pub price: u64,
}

#[consumers(crate = ::bus)]
impl Billing {
    /// Bills one.
    ///
    /// # Errors
    /// When it is free.
    #[consumer(OrderPlaced, id = "renamed.bill")]
    pub async fn bill(&self, event: OrderPlaced) -> bus::Result {
        std::future::ready(event).await;
        if self.price > 0 {
            Ok(())
        } else {
            Err(bus::Error::non_retryable("free"))
        }
    }
}

/// A parcel left.
#[derive(Clone, Debug, PartialEq, Eq, Event, Serialize, Deserialize, JsonSchema)]
#[event("parcel.sent.v1", key = parcel, crate = bus)]
pub struct ParcelSent {
    /// The parcel.
    pub parcel: u64,
}

/// What happens to parcels.
#[catalog(schema, crate = ::bus)]
#[derive(Clone, Debug)]
pub enum ParcelEvents {
    /// One left.
    ParcelSent(ParcelSent),
}

/// All handlers of this library.
#[must_use]
pub fn all() -> HandlerList<Memory> {
    handlers![ship, Billing]
}
