//! What the behaviour tests share: events, a record of what happened, and buses on virtual time.

mod log;
mod probe;
mod transport;

pub(crate) use log::Logged;
pub(crate) use probe::{Fault, Probe, Take};
pub(crate) use transport::Broker;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaybus::bus::RelayBusBuilder;
use relaybus::store::{
    ClaimRequest, DeliveryQuery, DeliveryRecord, EventStore, HandlerSlots, SessionRequest, TurnRequest,
};
use relaybus::{
    Attempts, Event, HandlerId, MemoryStore, RelayBus, RetryOverrides, RetryPolicy, Timestamp, VirtualClock,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// An event with an ordering key.
#[derive(Event, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[event("order.placed.v1", key = order_id)]
pub(crate) struct Placed {
    pub(crate) order_id: String,
    pub(crate) number: u32,
}

/// Another event of the same keys.
#[derive(Event, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[event("order.shipped.v1", key = order_id)]
pub(crate) struct Shipped {
    pub(crate) order_id: String,
}

/// An event without a key.
#[derive(Event, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[event("note.v1")]
pub(crate) struct Note {
    pub(crate) text: String,
}

pub(crate) fn placed(order_id: &str, number: u32) -> Placed {
    Placed { order_id: order_id.to_owned(), number }
}

pub(crate) fn shipped(order_id: &str) -> Shipped {
    Shipped { order_id: order_id.to_owned() }
}

pub(crate) fn note(text: &str) -> Note {
    Note { text: text.to_owned() }
}

pub(crate) const START: &str = "2026-01-01T00:00:00Z";

pub(crate) fn start_time() -> Timestamp {
    START.parse().unwrap()
}

/// A builder of a bus whose time is tokio's: for tests that start paused.
pub(crate) fn builder<S: EventStore>(store: S) -> RelayBusBuilder<S> {
    RelayBus::builder(store).clock(VirtualClock::starting_at(start_time())).seed(7)
}

pub(crate) fn memory() -> RelayBusBuilder<MemoryStore> {
    builder(MemoryStore::new())
}

/// The message that building fails with.
pub(crate) fn refusal<S: EventStore>(builder: RelayBusBuilder<S>) -> String {
    let error = builder.build().map(drop).unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_CONFIGURATION", "{error}");
    error.to_string()
}

/// Retries that come soon, at most `attempts` in all.
pub(crate) fn soon(attempts: u32) -> RetryPolicy {
    RetryPolicy {
        attempts: Some(attempts),
        initial_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(2),
        ..RetryPolicy::default()
    }
}

pub(crate) fn limited(attempts: u32) -> RetryOverrides {
    RetryOverrides { attempts: Some(Attempts::Limited(attempts)), ..RetryOverrides::NONE }
}

/// Lets virtual time pass.
#[allow(clippy::disallowed_methods, reason = "virtual time passes only when it is waited for")]
pub(crate) async fn pass(duration: Duration) {
    tokio::time::sleep(duration).await; // sleep: virtual time, which passes only when it is waited for
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Waits for `future`, at most two hours, which are mostly virtual.
#[allow(clippy::disallowed_methods, reason = "a test that hangs must fail")]
pub(crate) async fn soon_or_fail<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(secs(7200), future).await.expect("it did not happen in two hours")
}

pub(crate) async fn deliveries<S: EventStore>(bus: &RelayBus<S>) -> Vec<DeliveryRecord> {
    bus.list_deliveries(&DeliveryQuery::all()).await.unwrap().deliveries
}

/// A worker that claims what is due for `handler`, for 30 s, and then dies without a word. Returns how much that was.
pub(crate) async fn crash_with_everything(store: &MemoryStore, now: Timestamp, handler: &str) -> usize {
    let handler = HandlerId::new(handler).unwrap();
    let request = SessionRequest::new("doomed", vec![handler.clone()], secs(30), now);
    let mut session = store.open_session(&request).await.unwrap();
    let slots = [HandlerSlots::new(handler, 10)];
    let mut turn = TurnRequest::new(now).claiming(ClaimRequest::new(&slots, 10, 20));
    turn.sweep = true;
    let turn = store.turn(&mut session, &turn).await.unwrap();
    turn.runs.iter().map(|run| run.deliveries.len()).sum()
}

/// What happened, in order. Clones share it.
#[derive(Debug)]
pub(crate) struct Seen<T = String>(Arc<(Mutex<Vec<T>>, Notify)>);

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(Arc::new((Mutex::new(Vec::new()), Notify::new())))
    }
}

impl<T> Clone for Seen<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Clone + Debug> Seen<T> {
    pub(crate) fn push(&self, what: impl Into<T>) {
        self.0.0.lock().unwrap().push(what.into());
        self.0.1.notify_waiters();
    }

    /// As `push`, as the future of a handler that does nothing else.
    pub(crate) fn handled(&self, what: impl Into<T>) -> std::future::Ready<()> {
        self.push(what);
        std::future::ready(())
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.0.lock().unwrap().len()
    }

    /// Waits until `count` things have happened.
    pub(crate) async fn until(&self, count: usize) {
        let reached = async {
            loop {
                let more = self.0.1.notified();
                if self.count() >= count {
                    return;
                }
                more.await;
            }
        };
        soon_or_fail(reached).await;
    }
}
