//! Transports: how events leave for a broker and arrive from one.
//!
//! A route is a handler like any other: its deliveries are claimed, retried and buried the same way, and it succeeds
//! when the broker has taken responsibility for the message. A subscription hands what it receives to the [`Inbox`],
//! which stores the event once by its id; only then may the transport acknowledge.

mod inbox;
mod route;

pub use inbox::{Inbox, ReceiveOutcome, Received};
pub(crate) use route::ROUTE_PREFIX;
pub use route::{DEFAULT_ROUTE_TIMEOUT, Route, route_handler_id};

use futures_util::future::BoxFuture;

use crate::catalog::{ApplyWireTypes, WireType};
use crate::envelope::{Envelope, RawPayload};
use crate::error::{Error, Result};

/// A connection to a broker. Usable as `dyn Transport`.
pub trait Transport: Send + Sync + 'static {
    /// The name that routes and subscriptions refer to.
    fn name(&self) -> &str;

    /// The messaging system, for telemetry: `kafka`, `rabbitmq`. Defaults to the name.
    fn system(&self) -> &str {
        self.name()
    }

    /// Sends one event and resolves when the broker has confirmed it.
    ///
    /// Sends of one key come one at a time, in commit order; a transport must not reorder what it was given.
    /// Dropping the future is a failed attempt: the event may have been sent and is sent again.
    fn publish<'a>(&'a self, destination: &'a str, event: &'a Envelope<RawPayload>) -> BoxFuture<'a, Result<()>>;

    /// Starts receiving from `destinations`. Each message goes to [`Inbox::receive`] and is acknowledged only after that
    /// resolved; one that [`crate::Error::InvalidEnvelope`] refuses goes to the broker's dead letters.
    fn subscribe<'a>(&'a self, destinations: &'a [String], inbox: Inbox) -> BoxFuture<'a, Result<()>>;

    /// Checks the names under which it is to send and recognize events, and returns what applies them. It is called once a
    /// bus, before anything connects, when routes or catalogs give names; events without one travel under their type.
    ///
    /// Defaults to a refusal: only a codec that maps type names can take them.
    ///
    /// # Errors
    /// `RELAYBUS_WIRE_TYPES_UNSUPPORTED` when it cannot map names, has names of another bus or is connected already;
    /// `RELAYBUS_WIRE_TYPE_COLLISION` when they clash with those that its codec has.
    fn declare_wire_types(&self, names: &[WireType]) -> Result<ApplyWireTypes> {
        Err(Error::WireTypesUnsupported {
            message: format!(
                "the transport `{}` cannot map the names of {} event types on the wire: give it a codec with names, or take them out",
                self.name(),
                names.len()
            ),
        })
    }

    /// Whether it can publish and, once subscribed, receives.
    fn is_ready(&self) -> bool;

    /// Stops receiving, waits for what is in flight and disconnects what the transport connected itself. Idempotent.
    fn close(&self) -> BoxFuture<'_, Result<()>>;

    /// Disconnects at once what the transport connected itself.
    fn force_close(&self);
}
