//! From drafts and settings to what a store appends.

use std::sync::Arc;
use std::time::Duration;

use crate::bus::{Engine, UnroutedEvents};
use crate::duration::IntoDuration;
use crate::envelope::{Envelope, RawPayload, check_storable};
use crate::error::{Error, Result};
use crate::event::{Event, EventId, EventType, OrderingKey};
use crate::headers::Headers;
use crate::store::{AppendBatch, NewEvent};
use crate::trace::{TRACEPARENT, TRACESTATE};

/// An event without identity: its type, and what it was serialized to or why it cannot be.
#[derive(Debug)]
pub(crate) struct Draft {
    event_type: EventType,
    content: Result<Content>,
}

#[derive(Debug)]
struct Content {
    payload: RawPayload,
    /// The event's own key. A fault of it counts only when no other key was given.
    key: Result<Option<OrderingKey>>,
}

impl Draft {
    /// Validates and serializes an event, and reads its key.
    pub(crate) fn of<E: Event>(event: &E) -> Self {
        Self { event_type: E::TYPE, content: Content::of(event) }
    }

    pub(super) fn event_type(&self) -> &EventType {
        &self.event_type
    }
}

impl Content {
    fn of<E: Event>(event: &E) -> Result<Self> {
        let invalid =
            |reason: &str, source| Error::EventValidation { event_type: E::TYPE, reason: reason.to_owned(), source };
        event.validate().map_err(|error| invalid("its validation refused it", Some(error)))?;
        let payload = serde_json::to_string(event)
            .map_err(|error| invalid("it does not serialize as JSON", Some(Box::new(error))))?;
        check_storable(&payload).map_err(|reason| invalid(reason, None))?;
        Ok(Self { payload: RawPayload::stored(payload), key: event.ordering_key() })
    }
}

/// What a publish was asked to set. The first fault is kept and returned when it is awaited.
#[derive(Debug, Default)]
pub(crate) struct PublishSettings {
    key: Option<Option<OrderingKey>>,
    delay: Option<Duration>,
    headers: Vec<(String, String)>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    pub(super) id: Option<EventId>,
    occurred_at: Option<crate::Timestamp>,
    fault: Option<Error>,
}

impl PublishSettings {
    pub(super) fn key(&mut self, key: String) {
        match OrderingKey::new(key) {
            Ok(key) => self.key = Some(Some(key)),
            Err(error) => self.fail(error),
        }
    }

    pub(super) fn without_key(&mut self) {
        self.key = Some(None);
    }

    pub(super) fn delay(&mut self, delay: impl IntoDuration) {
        match delay.into_duration() {
            Ok(delay) => self.delay = Some(delay),
            Err(error) => self.fail(error),
        }
    }

    pub(super) fn header(&mut self, name: String, value: String) {
        self.headers.push((name, value));
    }

    pub(super) fn id(&mut self, id: String) {
        match EventId::new(id) {
            Ok(id) => self.id = Some(id),
            Err(error) => self.fail(error),
        }
    }

    pub(super) fn correlation_id(&mut self, id: String) {
        self.text(&id, "correlation id");
        self.correlation_id = Some(id);
    }

    pub(super) fn causation_id(&mut self, id: String) {
        self.text(&id, "causation id");
        self.causation_id = Some(id);
    }

    pub(super) fn occurred_at(&mut self, at: crate::Timestamp) {
        self.occurred_at = Some(at);
    }

    fn text(&mut self, text: &str, what: &str) {
        if text.is_empty() || text.len() > MAX_RELATED_ID_BYTES || text.contains('\0') {
            self.fail(Error::configuration(format!(
                "a {what} has 1 to {MAX_RELATED_ID_BYTES} bytes and no NUL character, this one has {} bytes: pass a shorter or cleaned one",
                text.len()
            )));
        }
    }

    fn fail(&mut self, error: Error) {
        self.fault.get_or_insert(error);
    }
}

/// Longest correlation or causation id, in bytes.
const MAX_RELATED_ID_BYTES: usize = 1024;

/// What goes to the store, and what the caller is told.
pub(super) struct Prepared {
    pub(super) batch: AppendBatch,
    pub(super) ids: Vec<EventId>,
    pub(super) delayed: bool,
}

/// Turns drafts into a batch. `span_headers` come from the tracer; headers of the caller win.
pub(super) fn prepare(
    engine: &Engine,
    drafts: Vec<Draft>,
    settings: PublishSettings,
    span_headers: Vec<(String, String)>,
) -> Result<Prepared> {
    if let Some(fault) = settings.fault {
        return Err(fault);
    }
    let now = engine.now();
    let headers = joined_headers(settings.headers, span_headers)?;
    let due_at = settings.delay.map_or(now, |delay| now.after(delay));
    let mut prepared = Prepared {
        batch: AppendBatch::new(Vec::with_capacity(drafts.len()), now),
        ids: Vec::with_capacity(drafts.len()),
        delayed: settings.delay.is_some_and(|delay| !delay.is_zero()),
    };
    let correlation: Option<Arc<str>> = settings.correlation_id.map(Into::into);
    let causation: Option<Arc<str>> = settings.causation_id.map(Into::into);
    for Draft { event_type, content } in drafts {
        let Content { payload, key } = content?;
        let handlers = engine.handlers.of(&event_type);
        if handlers.is_empty() {
            unrouted(engine, &event_type)?;
        }
        let fresh_id = settings.id.is_none() && engine.id_maker.is_none();
        let id = settings.id.clone().unwrap_or_else(|| engine.next_id());
        let occurred_at = settings.occurred_at.unwrap_or(now);
        let mut envelope = Envelope::new(id.clone(), event_type, engine.options.source.clone(), payload, occurred_at);
        envelope.key = settings.key.clone().map_or(key, Ok)?;
        envelope.headers = headers.clone();
        if let Some(correlation) = &correlation {
            envelope.correlation_id = correlation.clone();
        }
        envelope.causation_id = causation.clone();
        let mut event = NewEvent::new(envelope, handlers, due_at);
        event.fresh_id = fresh_id;
        prepared.batch.events.push(event);
        prepared.ids.push(id);
    }
    Ok(prepared)
}

fn joined_headers(own: Vec<(String, String)>, span: Vec<(String, String)>) -> Result<Headers> {
    // A caller that passes its own trace context replaces the span's as a whole.
    let own_trace = own.iter().any(|(name, _)| name == TRACEPARENT);
    let span = span.into_iter().filter(|(name, _)| !(own_trace && (name == TRACEPARENT || name == TRACESTATE)));
    Headers::new(span.chain(own))
}

fn unrouted(engine: &Engine, event_type: &EventType) -> Result<()> {
    match engine.options.unrouted {
        UnroutedEvents::Warn => {
            engine.warn_unrouted(event_type);
            Ok(())
        }
        UnroutedEvents::Reject => Err(Error::configuration(format!(
            "event `{event_type}` has no handler and no route: register one, or allow unrouted events"
        ))),
    }
}
