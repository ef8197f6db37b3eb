//! What the columns of events and deliveries hold when they are stored.

use std::borrow::Cow;
use std::collections::HashSet;

use relaybus::store::{AppendBatch, AppendOutcome, Appended, NewEvent, lane_of};
use relaybus::{HandlerId, Timestamp};

use super::append::Numbers;
use super::args::{encode_id, key_number};
use super::handle::PgValue;

/// What an event that is there has.
pub(super) struct Known {
    pub(super) handlers: Vec<i16>,
    sequence: Option<i64>,
    key: Option<String>,
}

impl Known {
    pub(super) fn read(row: Vec<PgValue<'static>>) -> Option<(Vec<u8>, Self)> {
        match <[PgValue<'static>; 4]>::try_from(row).ok()? {
            [PgValue::Bytes(Some(id)), PgValue::Int2s(handlers), PgValue::Int8(sequence), PgValue::Text(key)] => {
                Some((id.into_owned(), Self { handlers, sequence, key: key.map(Cow::into_owned) }))
            }
            _ => None,
        }
    }
}

/// Deliveries that are added to events.
#[derive(Default)]
pub(super) struct Added {
    ids: Vec<Option<Cow<'static, [u8]>>>,
    pub(super) handlers: Vec<i16>,
    sequences: Vec<Option<i64>>,
    keys: Vec<Option<i64>>,
    lanes: Vec<i16>,
    due: Vec<Option<Timestamp>>,
}

impl Added {
    /// The key is that of the copy that was stored first.
    pub(super) fn push(&mut self, id: &[u8], handler: i16, known: &Known, event: &NewEvent) {
        self.ids.push(Some(Cow::Owned(id.to_vec())));
        self.handlers.push(handler);
        self.sequences.push(known.sequence);
        self.keys.push(known.key.as_deref().map(key_number));
        self.lanes.push(i16::from(lane_of(known.key.as_deref().unwrap_or(event.envelope.id.as_str()))));
        self.due.push(Some(event.due_at));
    }

    /// The ids of the events that get a handler.
    pub(super) fn events(&self) -> HashSet<Vec<u8>> {
        self.ids.iter().flatten().map(|id| id.to_vec()).collect()
    }

    pub(super) fn values(self) -> [PgValue<'static>; 6] {
        [
            PgValue::BytesList(self.ids),
            PgValue::Int2s(self.handlers),
            PgValue::Int8s(self.sequences),
            PgValue::Int8s(self.keys),
            PgValue::Int2s(self.lanes),
            PgValue::Times(self.due),
        ]
    }
}

/// The id in a row that has nothing else.
pub(super) fn id_of_row(row: Vec<PgValue<'static>>) -> Option<Vec<u8>> {
    match row.into_iter().next() {
        Some(PgValue::Bytes(Some(id))) => Some(id.into_owned()),
        _ => None,
    }
}

/// What the columns of an event hold that is not as in its envelope.
pub(super) struct Row<'e> {
    pub(super) id: Vec<u8>,
    pub(super) occurred: Option<Timestamp>,
    pub(super) correlation: Option<Vec<u8>>,
    pub(super) causation: Option<Vec<u8>>,
    pub(super) headers: Option<&'e str>,
    pub(super) lane: i16,
}

impl<'e> Row<'e> {
    pub(super) fn of(event: &'e NewEvent, now: Timestamp) -> Self {
        let envelope = &event.envelope;
        let id = envelope.id.as_str();
        Self {
            id: encode_id(id),
            occurred: (envelope.occurred_at != now).then_some(envelope.occurred_at),
            correlation: (&*envelope.correlation_id != id).then(|| encode_id(&envelope.correlation_id)),
            causation: envelope.causation_id.as_ref().map(|id| encode_id(id)),
            headers: (!envelope.headers.is_empty()).then(|| envelope.headers.as_json()),
            lane: i16::from(lane_of(envelope.key.as_ref().map_or(id, |key| key.as_str()))),
        }
    }
}

/// The numbers of an event's handlers, each once, in their order.
pub(super) fn handlers_of(event: &NewEvent, numbers: &Numbers) -> Vec<i16> {
    let mut all = Vec::with_capacity(event.handlers.len());
    for number in event.handlers.iter().filter_map(|name| numbers.get(name).copied()) {
        if !all.contains(&number) {
            all.push(number);
        }
    }
    all
}

pub(super) fn repeats(batch: &AppendBatch) -> bool {
    let mut seen = HashSet::new();
    batch.events.len() > 1 && !batch.events.iter().all(|event| seen.insert(event.envelope.id.as_str()))
}

pub(super) fn all_stored(batch: &AppendBatch) -> Appended {
    let outcomes = batch.events.iter().map(|event| {
        let distinct: HashSet<&HandlerId> = event.handlers.iter().collect();
        AppendOutcome::Stored { deliveries: distinct.len() }
    });
    Appended { outcomes: outcomes.collect() }
}
