//! Routes: which events go where, and with which retry settings.

use std::time::Duration;

use crate::catalog::WireType;
use crate::error::Result;
use crate::event::{Event, EventType};
use crate::handler_id::HandlerId;
use crate::retry::{RetryOverrides, RetryPolicy};

/// Time a send may take without a timeout of the route's own.
pub const DEFAULT_ROUTE_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends the events of some types to a destination of a transport.
///
/// All routes to one destination of one transport are one handler, so that the events of a key keep their order across
/// types; they must therefore agree on retry and timeout.
///
/// ```
/// # use relaybus::{Event, transport::Route};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Event, Serialize, Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
/// let route = Route::to("kafka", "orders").event::<OrderPlaced>();
/// assert_eq!(route.handler_id()?.as_str(), "relaybus.transport:kafka:orders");
/// # Ok::<(), relaybus::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Route {
    pub(crate) transport: String,
    pub(crate) destination: String,
    pub(crate) events: Vec<EventType>,
    pub(crate) retry: RetryOverrides,
    pub(crate) timeout: Duration,
    /// The catalog that it is of.
    pub(crate) catalog: Option<&'static str>,
    /// Names of events on the wire.
    pub(crate) wire: Vec<WireType>,
}

impl Route {
    /// A route to `destination` of the transport named `transport`.
    pub fn to(transport: impl Into<String>, destination: impl Into<String>) -> Self {
        Self {
            transport: transport.into(),
            destination: destination.into(),
            events: Vec::new(),
            retry: RetryOverrides::NONE,
            timeout: DEFAULT_ROUTE_TIMEOUT,
            catalog: None,
            wire: Vec::new(),
        }
    }

    /// Also sends events of type `E`.
    #[must_use]
    pub fn event<E: Event>(self) -> Self {
        self.event_type(E::TYPE)
    }

    /// Also sends events of this type.
    #[must_use]
    pub fn event_type(mut self, event_type: EventType) -> Self {
        self.events.push(event_type);
        self
    }

    /// Retry settings. Without them: no limit of attempts, 1 s, factor 2, at most 5 min.
    #[must_use]
    pub fn retry(mut self, retry: RetryOverrides) -> Self {
        self.retry = retry;
        self
    }

    /// Longest time a send may take. Defaults to 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The id of the handler that this route is.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when transport and destination make no valid handler id.
    pub fn handler_id(&self) -> Result<HandlerId> {
        route_handler_id(&self.transport, &self.destination)
    }

    pub(crate) fn policy(&self) -> RetryPolicy {
        RetryPolicy::route_default().overridden(&self.retry)
    }
}

/// How the ids of routes begin, and of no other handler.
pub(crate) const ROUTE_PREFIX: &str = "relaybus.transport:";

/// The id of the handler that sends to `destination` of `transport`.
///
/// # Errors
/// `RELAYBUS_CONFIGURATION` when they make no valid handler id.
pub fn route_handler_id(transport: &str, destination: &str) -> Result<HandlerId> {
    HandlerId::new(format!("{ROUTE_PREFIX}{transport}:{destination}"))
}
