//! Events in the making.

use relaybus::store::{AppendBatch, NewEvent};
use relaybus::{Envelope, EventId, EventType, HandlerId, OrderingKey, RawPayload, Timestamp};

use super::{at, handler};

/// An event in the making; see [`event`].
#[derive(Clone, Debug)]
pub struct Draft {
    /// The envelope, to be changed at will.
    pub envelope: Envelope<RawPayload>,
    handlers: Vec<HandlerId>,
    due_at: Option<Timestamp>,
    fresh_id: bool,
}

/// An event of the suite: type `suite.happened`, for the handler `h`, without a key, due at once.
#[must_use]
pub fn event(id: &str) -> Draft {
    let payload = RawPayload::new(format!("{{\"id\":{}}}", serde_json::Value::from(id))).unwrap();
    let envelope =
        Envelope::new(EventId::new(id).unwrap(), EventType::from_static("suite.happened"), "suite", payload, at(0));
    Draft { envelope, handlers: vec![handler("h")], due_at: None, fresh_id: false }
}

impl Draft {
    /// With an ordering key.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.envelope.key = Some(OrderingKey::new(key).unwrap());
        self
    }

    /// For these handlers instead of `h`.
    #[must_use]
    pub fn to(mut self, handlers: &[&str]) -> Self {
        self.handlers = handlers.iter().map(|name| handler(name)).collect();
        self
    }

    /// Due then instead of at once.
    #[must_use]
    pub fn due(mut self, due_at: Timestamp) -> Self {
        self.due_at = Some(due_at);
        self
    }

    /// With this JSON text as payload.
    #[must_use]
    pub fn payload(mut self, json: &str) -> Self {
        self.envelope.payload = RawPayload::new(json).unwrap();
        self
    }

    /// Of this type.
    #[must_use]
    pub fn event_type(mut self, name: &str) -> Self {
        self.envelope.event_type = EventType::new(name).unwrap();
        self
    }

    /// Marked as having an id that no earlier event can have.
    #[must_use]
    pub fn fresh(mut self) -> Self {
        self.fresh_id = true;
        self
    }

    /// As an event to store at `now`.
    #[must_use]
    pub fn build(self, now: Timestamp) -> NewEvent {
        let mut event = NewEvent::new(self.envelope, self.handlers.into(), self.due_at.unwrap_or(now));
        event.fresh_id = self.fresh_id;
        event
    }
}

/// The drafts as a batch to store at `now`.
#[must_use]
pub fn batch(drafts: impl IntoIterator<Item = Draft>, now: Timestamp) -> AppendBatch {
    AppendBatch::new(drafts.into_iter().map(|draft| draft.build(now)).collect(), now)
}
