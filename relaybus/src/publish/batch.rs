//! Several events in one call.

use super::prepare::Draft;
use crate::event::Event;

/// Events to publish together, of one type or several, in order.
///
/// ```
/// # use relaybus::{Event, EventBatch};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Event, Serialize, Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
/// # #[derive(Event, Serialize, Deserialize)] #[event("stock.reserved.v1")] struct StockReserved {}
/// let batch = EventBatch::new().with(OrderPlaced {}).with(StockReserved {});
/// assert_eq!(batch.len(), 2);
/// let same_type: EventBatch = vec![OrderPlaced {}, OrderPlaced {}].into();
/// ```
#[derive(Debug, Default)]
pub struct EventBatch {
    drafts: Vec<Draft>,
}

impl EventBatch {
    /// No events yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event.
    #[must_use]
    pub fn with<E: Event>(mut self, event: E) -> Self {
        self.push(&event);
        self
    }

    /// Adds an event.
    pub fn push<E: Event>(&mut self, event: &E) {
        self.drafts.push(Draft::of(event));
    }

    /// How many events it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.drafts.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    pub(super) fn into_drafts(self) -> Vec<Draft> {
        self.drafts
    }
}

impl<E: Event> FromIterator<E> for EventBatch {
    fn from_iter<I: IntoIterator<Item = E>>(events: I) -> Self {
        Self { drafts: events.into_iter().map(|event| Draft::of(&event)).collect() }
    }
}

impl<E: Event> From<Vec<E>> for EventBatch {
    fn from(events: Vec<E>) -> Self {
        events.into_iter().collect()
    }
}

impl<E: Event, const N: usize> From<[E; N]> for EventBatch {
    fn from(events: [E; N]) -> Self {
        events.into_iter().collect()
    }
}
