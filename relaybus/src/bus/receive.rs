//! Receiving: an event from elsewhere is stored once by its id, for local handlers only, so that a route never sends it back.

use super::engine::Engine;
use crate::envelope::{Envelope, RawPayload, check_storable};
use crate::error::{Error, Result};
use crate::event::{EventId, OrderingKey};
use crate::observe::{Interest, ReceiveFinished};
use crate::store::{AppendBatch, AppendOutcome, EventStore, NewEvent};
use crate::transport::ReceiveOutcome;

impl Engine {
    /// Stores a received event. `from` names the transport and the destination, for telemetry.
    pub(crate) async fn receive(
        &self,
        event: Envelope<RawPayload>,
        from: Option<(&str, &str)>,
    ) -> Result<ReceiveOutcome> {
        let timed = self.observers.want(Interest::RECEIVE).then(|| self.clock.monotonic());
        let (source, headers) = (event.source.clone(), event.headers.clone());
        let result = self.store_received(event).await;
        if let Some(began) = timed {
            let (transport, destination) = from.unwrap_or(("", ""));
            let report = ReceiveFinished {
                transport,
                destination,
                source: &source,
                headers: &headers,
                duration: self.clock.monotonic().saturating_sub(began),
                outcome: result.as_ref().copied(),
            };
            self.observers.call(Interest::RECEIVE, |observer| observer.receive_finished(&report));
        }
        result
    }

    async fn store_received(&self, event: Envelope<RawPayload>) -> Result<ReceiveOutcome> {
        let invalid = |reason: String| Error::InvalidEnvelope { reason };
        // A broker's message may carry anything; what cannot be stored can never be handled.
        EventId::new(event.id.as_str()).map_err(|error| invalid(error.to_string()))?;
        check_storable(event.payload.as_str()).map_err(|reason| invalid(reason.to_owned()))?;
        check_storable(event.headers.as_json()).map_err(|reason| invalid(format!("in its headers, {reason}")))?;
        if let Some(key) = &event.key {
            OrderingKey::new(key.as_str()).map_err(|error| invalid(error.to_string()))?;
        }
        let texts = [
            ("source", Some(&event.source)),
            ("correlation id", Some(&event.correlation_id)),
            ("causation id", event.causation_id.as_ref()),
        ];
        for (what, text) in texts {
            if text.is_some_and(|text| text.contains('\0')) {
                return Err(invalid(format!("its {what} has a NUL character")));
            }
        }
        let handlers = self.handlers.local_of(&event.event_type);
        if handlers.is_empty() {
            return Ok(ReceiveOutcome::Ignored);
        }
        let now = self.now();
        let batch = AppendBatch::new(vec![NewEvent::new(event, handlers, now)], now);
        let appended = self.store.append_alone(&batch).await?;
        self.wake.wake();
        match appended.outcomes.first() {
            Some(AppendOutcome::Stored { .. }) => Ok(ReceiveOutcome::Accepted),
            _ => Ok(ReceiveOutcome::Duplicate),
        }
    }
}
