//! What the services tell each other: the events of orders, as one catalog. One of them publishes an event, another one
//! handles it; both depend on this crate.

use relaybus::{Event, catalog};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A customer placed an order.
#[derive(Clone, Debug, PartialEq, Eq, Event, Serialize, Deserialize, JsonSchema)]
#[event("order.placed.v1", key = order_id)]
pub struct OrderPlaced {
    /// The order.
    pub order_id: String,
    /// What it is about.
    pub product: String,
}

/// A customer changed their mind.
#[derive(Clone, Debug, PartialEq, Eq, Event, Serialize, Deserialize, JsonSchema)]
#[event("order.cancelled.v1", key = order_id)]
pub struct OrderCancelled {
    /// The order.
    pub order_id: String,
}

/// The parcel is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Event, Serialize, Deserialize, JsonSchema)]
#[event("order.shipped.v1", key = order_id)]
pub struct OrderShipped {
    /// The order.
    pub order_id: String,
    /// Who carries it.
    pub carrier: String,
}

/// The events of orders. What they promise is in `schemas/orders.json`; the tests compare.
#[catalog(schema)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderEvents {
    /// A customer placed an order.
    OrderPlaced(OrderPlaced),
    /// A customer changed their mind.
    OrderCancelled(OrderCancelled),
    /// The parcel is on its way.
    OrderShipped(OrderShipped),
}
