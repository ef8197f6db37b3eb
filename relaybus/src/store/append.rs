//! What `append` takes and answers.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::envelope::{Envelope, RawPayload};
use crate::handler_id::HandlerId;

/// Events to store, with their deliveries.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AppendBatch {
    /// The events, in the order they were published.
    pub events: Vec<NewEvent>,
    /// The time of storing.
    pub now: Timestamp,
}

impl AppendBatch {
    /// A batch.
    #[must_use]
    pub fn new(events: Vec<NewEvent>, now: Timestamp) -> Self {
        Self { events, now }
    }
}

/// One event to store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewEvent {
    /// The event.
    pub envelope: Envelope<RawPayload>,
    /// The handlers that get a delivery. May be empty: the event is stored all the same.
    pub handlers: Arc<[HandlerId]>,
    /// When its deliveries become due.
    pub due_at: Timestamp,
    /// Whether the id was made here just now, so that no earlier event can have it.
    pub fresh_id: bool,
}

impl NewEvent {
    /// An event with the caller's own id, due at once.
    #[must_use]
    pub fn new(envelope: Envelope<RawPayload>, handlers: Arc<[HandlerId]>, due_at: Timestamp) -> Self {
        Self { envelope, handlers, due_at, fresh_id: false }
    }
}

/// What became of each event of a batch, in the batch's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// One outcome an event.
    pub outcomes: Vec<AppendOutcome>,
}

/// What became of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It was stored, with this many deliveries.
    Stored {
        /// Deliveries created.
        deliveries: usize,
    },
    /// It was there before; deliveries were added for handlers it never had.
    Known {
        /// Deliveries added.
        added: usize,
    },
}

impl AppendOutcome {
    /// Deliveries that were created.
    #[must_use]
    pub fn deliveries(self) -> usize {
        match self {
            Self::Stored { deliveries } => deliveries,
            Self::Known { added } => added,
        }
    }
}
