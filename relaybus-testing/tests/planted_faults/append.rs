//! Faults of storing: what goes in is not what was given.

use relaybus::store::{AppendBatch, AppendOutcome, Appended, DeliveryId, NewEvent};
use relaybus::{EventId, EventStore, Headers, OrderingKey, RawPayload, Result, Timestamp};

use super::fault::Fault;
use super::store::Mutant;

impl Mutant {
    pub(crate) async fn append_spoiled(&self, batch: &AppendBatch) -> Result<Appended> {
        if self.is(Fault::SplitsBatches) {
            let mut outcomes = Vec::new();
            for event in &batch.events {
                let one = AppendBatch::new(vec![event.clone()], batch.now);
                outcomes.extend(self.inner.append_alone(&one).await?.outcomes);
                tokio::task::yield_now().await;
            }
            return Ok(Appended { outcomes });
        }
        let spoiled = self.spoiled(batch);
        let mut appended = self.inner.append_alone(&spoiled).await?;
        if self.is(Fault::RevivesTheDead) {
            let of_event = |event: &NewEvent| -> Vec<DeliveryId> {
                let id = &event.envelope.id;
                event.handlers.iter().map(|handler| DeliveryId::new(handler.clone(), id.clone())).collect()
            };
            let all: Vec<DeliveryId> = batch.events.iter().flat_map(of_event).collect();
            self.inner.requeue(&all, batch.now).await?;
        }
        for event in &batch.events[appended.outcomes.len()..] {
            appended.outcomes.push(AppendOutcome::Stored { deliveries: event.handlers.len() });
        }
        Ok(appended)
    }

    /// The batch as this store gets it wrong.
    pub(crate) fn spoiled(&self, batch: &AppendBatch) -> AppendBatch {
        let mut spoiled = batch.clone();
        match self.fault {
            Fault::LosesTheLastEvent if spoiled.events.len() > 1 => drop(spoiled.events.pop()),
            Fault::SortsBatches => spoiled.events.sort_by(|a, b| a.envelope.id.cmp(&b.envelope.id)),
            Fault::RoundsTimes => spoiled.now = to_millis(spoiled.now),
            _ => {}
        }
        for event in &mut spoiled.events {
            self.spoil(event, batch.now);
        }
        spoiled
    }

    fn spoil(&self, event: &mut NewEvent, now: Timestamp) {
        let mut notes = self.notes();
        let known = !notes.seen.insert(event.envelope.id.to_string());
        let envelope = &mut event.envelope;
        match self.fault {
            Fault::IgnoresDelays => event.due_at = now,
            Fault::ForgetsIds | Fault::KeepsTheLastCopy if known => {
                envelope.id = EventId::stored(format!("{}'", envelope.id));
            }
            Fault::IgnoresAddedHandlers if known => event.handlers = [].into(),
            Fault::ReformatsPayloads => {
                let value: serde_json::Value = serde_json::from_str(envelope.payload.as_str()).unwrap_or_default();
                envelope.payload = RawPayload::stored(value.to_string());
            }
            Fault::SortsHeaders => {
                let mut pairs: Vec<(String, String)> =
                    envelope.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                pairs.sort();
                envelope.headers = Headers::new(pairs).unwrap();
            }
            Fault::FoldsKeys => envelope.key = with_key(envelope.key.as_ref(), str::to_lowercase),
            Fault::CutsKeys => {
                envelope.key = with_key(envelope.key.as_ref(), |key| key.chars().take(1_000).collect());
            }
            Fault::TrimsIds => envelope.id = EventId::stored(envelope.id.as_str().trim().to_owned()),
            Fault::DropsTheCause => envelope.causation_id = None,
            Fault::RoundsTimes => {
                envelope.occurred_at = to_millis(envelope.occurred_at);
                event.due_at = to_millis(event.due_at);
            }
            Fault::HasNoOrder => {
                if let Some(key) = &envelope.key {
                    notes.keys.insert(envelope.id.to_string(), key.clone());
                }
                let id = envelope.id.clone();
                envelope.key = with_key(envelope.key.as_ref(), |key| format!("{key} {id}"));
            }
            _ => {}
        }
    }
}

fn with_key(key: Option<&OrderingKey>, change: impl FnOnce(&str) -> String) -> Option<OrderingKey> {
    key.map(|key| OrderingKey::stored(change(key.as_str())))
}

fn to_millis(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.as_millis() * 1_000)
}
