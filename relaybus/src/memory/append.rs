//! Appending: an event is stored once by its id, and remembers every handler it ever had a delivery for.

use std::sync::Arc;

use smallvec::SmallVec;

use super::state::{EventRow, Place, State};
use crate::clock::Timestamp;
use crate::envelope::{Envelope, RawPayload};
use crate::handler_id::HandlerId;
use crate::store::{AppendOutcome, NewEvent, lane_of};

/// An event that is ready to be stored.
#[derive(Debug)]
pub(super) struct StagedEvent {
    pub(super) event: Arc<Envelope<RawPayload>>,
    pub(super) handlers: Arc<[HandlerId]>,
    due_at: Timestamp,
    now: Timestamp,
}

impl StagedEvent {
    pub(super) fn new(event: &NewEvent, now: Timestamp) -> Self {
        Self { event: Arc::new(event.envelope.clone()), handlers: event.handlers.clone(), due_at: event.due_at, now }
    }

    /// Whether `outcome` made something that can be claimed at once.
    pub(super) fn is_due(&self, outcome: AppendOutcome) -> bool {
        outcome.deliveries() > 0 && self.due_at <= self.now
    }
}

impl State {
    /// Stores an event, or adds deliveries to the one that is stored under its id, for handlers it never had.
    ///
    /// The new deliveries of a stored event get its position, so they are earlier than every event after it.
    pub(super) fn append(&mut self, staged: &StagedEvent) -> AppendOutcome {
        let known = self.ids.get(&staged.event.id).copied();
        let position = known.unwrap_or_else(|| self.insert_event(staged));
        let mut added = 0;
        for handler in staged.handlers.iter() {
            let queue = self.queue_of(handler);
            if self.events.get(&position).is_none_or(|row| row.handlers.contains(&queue)) {
                continue;
            }
            self.add_pending(Place { queue, position }, staged.due_at);
            added += 1;
        }
        match known {
            None => AppendOutcome::Stored { deliveries: added },
            Some(_) => AppendOutcome::Known { added },
        }
    }

    fn insert_event(&mut self, staged: &StagedEvent) -> i64 {
        let event = staged.event.clone();
        let lane = lane_of(event.key.as_ref().map_or(event.id.as_str(), |key| key.as_str()));
        self.last_position += 1;
        self.ids.insert(event.id.clone(), self.last_position);
        let row = EventRow {
            event,
            lane,
            stored_at: staged.now,
            completed_at: None,
            handlers: SmallVec::new(),
            deliveries: SmallVec::new(),
        };
        self.events.insert(self.last_position, row);
        self.last_position
    }

    /// Whether the stored event of this id, if there is one, ever had a delivery for `handler`.
    pub(super) fn had_handler(&self, row: Option<&EventRow>, handler: &HandlerId) -> bool {
        let queue = self.names.get(handler);
        row.zip(queue).is_some_and(|(row, queue)| row.handlers.contains(queue))
    }
}
