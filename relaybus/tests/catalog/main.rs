//! Catalogs: what they know, what handles them, what they publish, and what the boot refuses.
#![allow(clippy::disallowed_methods, reason = "tests drive time and tasks themselves")]
#![allow(clippy::unwrap_used, reason = "a test fails where something is wrong")]
#![allow(clippy::enum_variant_names, reason = "variants are called as their events are")]

mod boot;
#[cfg(feature = "schema")]
#[macro_use]
mod contracts;
#[cfg(feature = "schema")]
mod contracts_of_types;
mod facts;
mod handling;
mod routes;
mod views;
mod wire;

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use relaybus::catalog::{ApplyWireTypes, WireType};
use relaybus::{
    Envelope, Error, Event, EventStore, Inbox, MemoryStore, RawPayload, RelayBus, RelayBusBuilder, Result, Transport,
    catalog,
};
use serde::{Deserialize, Serialize};

macro_rules! events {
    ($($name:ident $event_type:literal),+ $(,)?) => {
        $(
            #[derive(Clone, Debug, PartialEq, Event, Serialize, Deserialize)]
            #[event($event_type, key = order_id)]
            pub(crate) struct $name {
                pub(crate) order_id: String,
                pub(crate) number: u32,
            }

            impl $name {
                pub(crate) fn new(order_id: &str, number: u32) -> Self {
                    Self { order_id: order_id.to_owned(), number }
                }
            }
        )+
    };
}
events! {
    OrderPlaced "order.placed.v1",
    OrderCancelled "order.cancelled.v1",
    OrderShipped "order.shipped.v1",
    UserRegistered "user.registered.v1",
}

#[catalog]
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OrderEvents {
    OrderPlaced(OrderPlaced),
    OrderCancelled(OrderCancelled),
    #[wire("Order Shipped")]
    OrderShipped(OrderShipped),
}

#[catalog(of = OrderEvents)]
pub(crate) enum Fulfilment {
    OrderPlaced(OrderPlaced),
    OrderShipped(OrderShipped),
}

#[catalog(name = "users")]
pub(crate) enum UserEvents {
    UserRegistered(UserRegistered),
}

fn builder() -> RelayBusBuilder<MemoryStore> {
    RelayBus::builder(MemoryStore::new())
}

/// The message of a start that was refused; the bus is idle then, and a second start says the same.
async fn refused<S: EventStore>(bus: &RelayBus<S>) -> String {
    let error = bus.start().await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
    let again = bus.start().await.unwrap_err();
    assert_eq!(error.to_string(), again.to_string());
    error.to_string()
}

/// Closures that count and record, shared with a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn push(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A transport that records what it sends and takes wire names when it is told to.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    maps_names: bool,
    sent: Seen,
    subscribed: Seen,
    names: Arc<Mutex<Vec<WireType>>>,
}

impl Wire {
    fn mapping_names() -> Self {
        Self { maps_names: true, ..Self::default() }
    }

    fn names(&self) -> Vec<(String, String)> {
        let names = self.names.lock().unwrap();
        names.iter().map(|name| (name.event_type.to_string(), name.name.clone())).collect()
    }
}

impl Transport for Wire {
    fn name(&self) -> &str {
        "wire"
    }

    fn publish<'a>(&'a self, destination: &'a str, event: &'a Envelope<RawPayload>) -> BoxFuture<'a, Result<()>> {
        self.sent.push(format!("{destination} {}", event.event_type));
        Box::pin(async { Ok(()) })
    }

    fn subscribe<'a>(&'a self, destinations: &'a [String], _: Inbox) -> BoxFuture<'a, Result<()>> {
        self.subscribed.push(destinations.join(" "));
        Box::pin(async { Ok(()) })
    }

    fn declare_wire_types(&self, names: &[WireType]) -> Result<ApplyWireTypes> {
        if !self.maps_names {
            return Err(Error::WireTypesUnsupported { message: "no names here".to_owned() });
        }
        let (kept, names) = (self.names.clone(), names.to_vec());
        Ok(Box::new(move || *kept.lock().unwrap() = names))
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn force_close(&self) {}
}
