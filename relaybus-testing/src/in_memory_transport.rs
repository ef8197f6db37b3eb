//! A transport in memory: it records what is sent, has outages on demand, and delivers what a test hands it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use relaybus::catalog::{ApplyWireTypes, WireType};
use relaybus::{
    Envelope, Error, EventId, EventType, Headers, Inbox, OrderingKey, RawPayload, ReceiveOutcome, Received, Result,
    Timestamp, Transport,
};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The transport of tests. Cloning is cheap; clones are the same transport. It takes the wire names of catalogs and routes,
/// once, as a transport with a codec for names does; [`InMemoryTransport::wire_name`] tells them.
///
/// ```
/// use std::sync::Arc;
/// use relaybus::{Envelope, EventId, EventType, RawPayload, Timestamp, Transport};
/// use relaybus_testing::InMemoryTransport;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), relaybus::Error> {
/// let transport = InMemoryTransport::new("kafka");
/// // RelayBus::builder(store).transport(Arc::new(transport.clone())).route(Route::to("kafka", "orders").event::<OrderPlaced>())
/// let event = Envelope::new(
///     EventId::new("e1")?, EventType::new("order.placed.v1")?, "shop", RawPayload::new("{}")?, Timestamp::EPOCH,
/// );
/// transport.fail_next_publishes(1);
/// assert!(transport.publish("orders", &event).await.is_err());
/// transport.publish("orders", &event).await?;
/// assert_eq!(transport.published_to("orders"), [event]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct InMemoryTransport(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    name: String,
    state: Mutex<State>,
    /// Sends that were confirmed, for those who wait.
    confirmed: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    published: Vec<Published>,
    outages: VecDeque<bool>,
    subscribers: Vec<(Vec<String>, Inbox)>,
    dead: Vec<Published>,
    /// Names on the wire by event type, once a bus has given some.
    wire: Option<BTreeMap<String, String>>,
    was_used: bool,
    is_away: bool,
    is_closed: bool,
}

impl State {
    fn wire_name<'s>(&'s self, event_type: &'s str) -> &'s str {
        self.wire.as_ref().and_then(|names| names.get(event_type)).map_or(event_type, String::as_str)
    }

    /// The event type behind a name on the wire.
    fn event_type<'s>(&'s self, wire_name: &'s str) -> &'s str {
        let mut names = self.wire.iter().flatten();
        names.find(|(_, name)| *name == wire_name).map_or(wire_name, |(event_type, _)| event_type)
    }
}

/// An event and where it was sent to.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The topic, exchange or queue.
    pub destination: String,
    /// The event.
    pub event: Envelope<RawPayload>,
}

impl InMemoryTransport {
    /// A transport of this name, which routes and subscriptions refer to.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let shared = Shared { name: name.into(), state: Mutex::default(), confirmed: watch::Sender::new(0) };
        Self(Arc::new(shared))
    }

    /// Every event that was sent and confirmed, in order.
    #[must_use]
    pub fn published(&self) -> Vec<Published> {
        self.lock().published.clone()
    }

    /// The events that were sent to a destination, in order.
    #[must_use]
    pub fn published_to(&self, destination: &str) -> Vec<Envelope<RawPayload>> {
        let state = self.lock();
        let here = state.published.iter().filter(|published| published.destination == destination);
        here.map(|published| published.event.clone()).collect()
    }

    /// The name under which events of a type travel: the one that a catalog or a route gave it, or the type itself.
    #[must_use]
    pub fn wire_name(&self, event_type: &EventType) -> String {
        self.lock().wire_name(event_type.as_str()).to_owned()
    }

    /// Waits until this many events were sent and confirmed in all.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn wait_for_publishes(&self, count: usize) {
        let mut confirmed = self.0.confirmed.subscribe();
        // The sender lives in `self`, so this ends only when there are as many.
        let _ = confirmed.wait_for(|confirmed| *confirmed >= count).await.is_ok();
    }

    /// The next `count` sends fail, as they do while a broker is away: each may be tried again.
    pub fn fail_next_publishes(&self, count: usize) {
        self.lock().outages.extend(std::iter::repeat_n(true, count));
    }

    /// The next `count` sends are refused for good, as a message that is too large is.
    pub fn refuse_next_publishes(&self, count: usize) {
        self.lock().outages.extend(std::iter::repeat_n(false, count));
    }

    /// Whether the transport says that it is ready, for tests of health. It is until told otherwise or closed.
    pub fn set_ready(&self, ready: bool) {
        self.lock().is_away = !ready;
    }

    /// Whether the bus has closed it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Received messages that can never be stored, as a broker's dead-letter queue has them.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<Published> {
        self.lock().dead.clone()
    }

    /// Hands an event to everyone who subscribed to `destination`, as a broker does: each gets a copy that went through
    /// JSON, again after a failure, at most `max_redeliveries` times; one that can never be stored goes to the dead letters.
    ///
    /// One outcome for each subscriber, in the order they subscribed.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when nobody subscribed to `destination`; else the last error of the first subscriber
    /// that did not take the event.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the event stored; delivering it again is a duplicate.
    pub async fn deliver(
        &self,
        destination: &str,
        event: &Envelope<RawPayload>,
        max_redeliveries: usize,
    ) -> Result<Vec<ReceiveOutcome>> {
        let inboxes = self.inboxes_of(destination);
        if inboxes.is_empty() {
            let message = format!("nobody subscribed to `{destination}`: start a bus with a subscription to it first");
            return Err(Error::configuration(message));
        }
        let message = to_message(event, &self.wire_name(&event.event_type)).to_string();
        let mut outcomes = Vec::new();
        for inbox in inboxes {
            outcomes.push(self.deliver_to(&inbox, destination, &message, event, max_redeliveries).await?);
        }
        Ok(outcomes)
    }

    async fn deliver_to(
        &self,
        inbox: &Inbox,
        destination: &str,
        message: &str,
        event: &Envelope<RawPayload>,
        max_redeliveries: usize,
    ) -> Result<ReceiveOutcome> {
        let mut redeliveries = 0;
        loop {
            let from = Received { destination: destination.to_owned() };
            let received = from_message(message, |name| self.lock().event_type(name).to_owned())?;
            let error = match inbox.receive(received, from).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            if matches!(error, Error::InvalidEnvelope { .. }) {
                let dead = Published { destination: destination.to_owned(), event: event.clone() };
                self.lock().dead.push(dead);
                return Err(error);
            }
            if redeliveries == max_redeliveries {
                return Err(error);
            }
            redeliveries += 1;
        }
    }

    fn inboxes_of(&self, destination: &str) -> Vec<Inbox> {
        let state = self.lock();
        let here = state.subscribers.iter().filter(|(destinations, _)| destinations.iter().any(|d| d == destination));
        here.map(|(_, inbox)| inbox.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, destination: &str, event: &Envelope<RawPayload>) -> Result<()> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(self.error("is closed: start it again", true));
        }
        match state.outages.pop_front() {
            Some(true) => return Err(self.error("is away for now: try again", true)),
            Some(false) => return Err(self.error("refuses this event for good: change it", false)),
            None => {}
        }
        state.was_used = true;
        state.published.push(Published { destination: destination.to_owned(), event: event.clone() });
        let count = state.published.len();
        drop(state);
        self.0.confirmed.send_replace(count);
        Ok(())
    }

    fn error(&self, what: &str, retryable: bool) -> Error {
        let message = format!("the in-memory transport `{}` {what}", self.0.name);
        Error::Transport { message, code: "RELAYBUS_IN_MEMORY_PUBLISH", retryable, source: None }
    }
}

impl Transport for InMemoryTransport {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn publish<'a>(&'a self, destination: &'a str, event: &'a Envelope<RawPayload>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.send(destination, event) })
    }

    fn subscribe<'a>(&'a self, destinations: &'a [String], inbox: Inbox) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut state = self.lock();
            state.subscribers.push((destinations.to_vec(), inbox));
            (state.was_used, state.is_closed) = (true, false);
            Ok(())
        })
    }

    fn declare_wire_types(&self, names: &[WireType]) -> Result<ApplyWireTypes> {
        let state = self.lock();
        let refusal = match (&state.wire, state.was_used) {
            (Some(_), _) => Some("has the wire names of another bus: give each bus a transport of its own"),
            (None, true) => Some("was used before it was given wire names: give it to the bus first"),
            (None, false) => None,
        };
        if let Some(refusal) = refusal {
            let message = format!("the in-memory transport `{}` {refusal}", self.0.name);
            return Err(Error::WireTypesUnsupported { message });
        }
        let names = names.iter().map(|wire| (wire.event_type.to_string(), wire.name.clone())).collect();
        let this = self.clone();
        Ok(Box::new(move || this.lock().wire = Some(names)))
    }

    fn is_ready(&self) -> bool {
        let state = self.lock();
        !state.is_away && !state.is_closed
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.force_close();
            Ok(())
        })
    }

    fn force_close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.subscribers.clear();
    }
}

/// The event as a message on a wire. Payload and headers travel as the text they are.
fn to_message(event: &Envelope<RawPayload>, wire_name: &str) -> Value {
    json!({
        "id": event.id.as_str(),
        "type": wire_name,
        "source": &*event.source,
        "key": event.key.as_ref().map(OrderingKey::as_str),
        "payload": event.payload.as_str(),
        "headers": event.headers.as_json(),
        "correlationId": &*event.correlation_id,
        "causationId": event.causation_id.as_deref(),
        "occurredAt": event.occurred_at.as_micros(),
    })
}

fn from_message(message: &str, event_type_of: impl Fn(&str) -> String) -> Result<Envelope<RawPayload>> {
    let invalid = |error: serde_json::Error| Error::InvalidEnvelope { reason: format!("it is not JSON ({error})") };
    let message: Value = serde_json::from_str(message).map_err(invalid)?;
    let text = |name: &str| message[name].as_str().map(str::to_owned);
    let required = |name: &str| text(name).unwrap_or_default();
    let occurred_at = Timestamp::from_micros(message["occurredAt"].as_i64().unwrap_or_default());
    let payload = RawPayload::new(required("payload"))?;
    let event_type = EventType::new(event_type_of(&required("type")))?;
    let mut event = Envelope::new(EventId::new(required("id"))?, event_type, required("source"), payload, occurred_at);
    event.key = text("key").map(OrderingKey::new).transpose()?;
    event.headers = Headers::stored(required("headers"));
    event.correlation_id = required("correlationId").into();
    event.causation_id = text("causationId").map(Into::into);
    Ok(event)
}
