//! What operators ask a store: lists, counts, requeueing and purging.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::event::{EventId, EventType, OrderingKey};
use crate::handler_id::HandlerId;

/// The name of a delivery: one event for one handler. Written `<handler>#<event id>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryId {
    handler: HandlerId,
    event_id: EventId,
}

impl DeliveryId {
    /// The delivery of `event_id` for `handler`.
    #[must_use]
    pub fn new(handler: HandlerId, event_id: EventId) -> Self {
        Self { handler, event_id }
    }

    /// The handler.
    #[must_use]
    pub fn handler(&self) -> &HandlerId {
        &self.handler
    }

    /// The event.
    #[must_use]
    pub fn event_id(&self) -> &EventId {
        &self.event_id
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.handler, self.event_id)
    }
}

impl FromStr for DeliveryId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (handler, event_id) = text.split_once('#').ok_or_else(|| {
            Error::configuration(format!("`{text}` is not a delivery id: write `<handler>#<event id>`"))
        })?;
        Ok(Self { handler: HandlerId::new(handler)?, event_id: EventId::new(event_id)? })
    }
}

/// The status of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryStatus {
    /// It waits: for its time, for an earlier one of its key, or for a worker.
    Pending,
    /// A worker holds it.
    Processing,
    /// It completed. Listed only by stores that keep a completion history.
    Completed,
    /// It gave up and waits for an operator.
    Dead,
}

/// Which deliveries to list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeliveryQuery {
    /// Only of this status.
    pub status: Option<DeliveryStatus>,
    /// Only of this handler.
    pub handler: Option<HandlerId>,
    /// Only of this event type.
    pub event_type: Option<EventType>,
    /// Only of this ordering key.
    pub key: Option<OrderingKey>,
    /// Continues behind this place.
    pub after: Option<DeliveryCursor>,
    /// Most deliveries of a page. Defaults to 100, at most 1000.
    pub limit: usize,
}

/// Page length without a limit.
pub const DEFAULT_PAGE: usize = 100;
/// Longest page.
pub const MAX_PAGE: usize = 1000;

impl Default for DeliveryQuery {
    fn default() -> Self {
        Self { status: None, handler: None, event_type: None, key: None, after: None, limit: DEFAULT_PAGE }
    }
}

impl DeliveryQuery {
    /// Every delivery.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only of this status.
    #[must_use]
    pub fn status(mut self, status: DeliveryStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Only of this handler.
    #[must_use]
    pub fn handler(mut self, handler: HandlerId) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Only of this ordering key.
    #[must_use]
    pub fn key(mut self, key: OrderingKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Only of this event type.
    #[must_use]
    pub fn event_type(mut self, event_type: EventType) -> Self {
        self.event_type = Some(event_type);
        self
    }

    /// Continues behind the page that gave this cursor.
    #[must_use]
    pub fn after(mut self, cursor: DeliveryCursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Most deliveries of the page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit.clamp(1, MAX_PAGE);
        self
    }
}

/// A place in the list of deliveries: by the event's position and the handler, so that paging neither skips nor repeats a
/// delivery that exists throughout.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeliveryCursor {
    /// The store's own number of the event.
    pub position: i64,
    /// The handler.
    pub handler: HandlerId,
}

/// A page of deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryPage {
    /// The deliveries, oldest event first.
    pub deliveries: Vec<DeliveryRecord>,
    /// Where the next page starts; `None` on the last one.
    pub next: Option<DeliveryCursor>,
}

/// A delivery as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryRecord {
    /// Its name.
    pub id: DeliveryId,
    /// The type of its event.
    pub event_type: EventType,
    /// The ordering key of its event.
    pub key: Option<OrderingKey>,
    /// Its status.
    pub status: DeliveryStatus,
    /// Attempts charged so far.
    pub attempts: u32,
    /// When it is or was due.
    pub due_at: Timestamp,
    /// When its event was stored.
    pub stored_at: Timestamp,
    /// When it completed or died.
    pub ended_at: Option<Timestamp>,
    /// The token it is held under, when processing.
    pub token: Option<String>,
    /// The last failure, as JSON text.
    pub last_error: Option<String>,
}

impl DeliveryRecord {
    /// A pending delivery; set the rest on the value.
    #[must_use]
    pub fn new(id: DeliveryId, event_type: EventType, due_at: Timestamp, stored_at: Timestamp) -> Self {
        Self {
            id,
            event_type,
            key: None,
            status: DeliveryStatus::Pending,
            attempts: 0,
            due_at,
            stored_at,
            ended_at: None,
            token: None,
            last_error: None,
        }
    }
}

/// What became of a delivery that was to be requeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeued {
    /// It was dead and is pending again.
    Requeued,
    /// It is not dead: nothing was changed.
    NotDead,
    /// There is no such delivery: it completed, or never was.
    Unknown,
}

/// Counts of deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Statistics {
    /// Waiting.
    pub pending: u64,
    /// Held by workers.
    pub processing: u64,
    /// Completed, where the store keeps a completion history, which none does unless told to. Without one it is 0 whatever
    /// has completed: count [`Observer::delivery_completed`](crate::Observer::delivery_completed) then.
    pub completed: u64,
    /// In the dead letters.
    pub dead: u64,
    /// When the oldest due pending delivery became due.
    pub oldest_due_at: Option<Timestamp>,
}

impl Statistics {
    /// How long the oldest due delivery has waited at `now`.
    #[must_use]
    pub fn lag(&self, now: Timestamp) -> Duration {
        self.oldest_due_at.map_or(Duration::ZERO, |due| now.since(due))
    }
}

/// Unfinished deliveries of one handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerBacklog {
    /// The handler.
    pub handler: HandlerId,
    /// Its deliveries that are pending or processing.
    pub unfinished: u64,
}

/// What to purge.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PurgeRequest {
    /// Delete events whose deliveries all completed before this; `None` keeps them.
    pub completed_before: Option<Timestamp>,
    /// Delete dead deliveries that died before this; `None` keeps them.
    pub dead_before: Option<Timestamp>,
    /// Most rows to delete in this call.
    pub limit: usize,
}

impl PurgeRequest {
    /// Nothing to purge yet, at most `limit` rows.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { completed_before: None, dead_before: None, limit }
    }
}

/// What a purge deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Events deleted.
    pub events: u64,
    /// Dead deliveries deleted.
    pub dead: u64,
    /// Completion records deleted.
    pub records: u64,
    /// Whether more is to be deleted.
    pub more: bool,
}
