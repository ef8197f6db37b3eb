//! What the columns of events and deliveries hold when they are stored.

use std::borrow::Cow;
use std::collections::HashSet;

use relaybus::store::{AppendBatch, AppendOutcome, Appended, NewEvent, lane_of};
use relaybus::{HandlerId, Timestamp};
use smallvec::SmallVec;

use super::args::{encode_id, key_number, key_slot};
use super::handle::PgValue;

/// Keys of one batch that get a lock each; more take the gate for all keys.
const MAX_KEY_LOCKS: usize = 128;

/// The numbers of an event's handlers, each once, in their order.
pub(super) type Numbers = SmallVec<[i16; 4]>;

/// What an event is stored under: its id, and the numbers of its handlers.
pub(super) struct Names {
    pub(super) id: Vec<u8>,
    pub(super) handlers: Numbers,
}

/// An event, what it is stored under, and the time of storing it.
#[derive(Clone, Copy)]
pub(super) struct Row<'e> {
    pub(super) event: &'e NewEvent,
    pub(super) id: &'e [u8],
    pub(super) handlers: &'e Numbers,
    pub(super) now: Timestamp,
}

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

impl<'e> Row<'e> {
    pub(super) fn new(event: &'e NewEvent, names: &'e Names, now: Timestamp) -> Self {
        Self { event, id: &names.id, handlers: &names.handlers, now }
    }

    /// The rows of a batch.
    pub(super) fn all(batch: &'e AppendBatch, names: &'e [Names]) -> Vec<Self> {
        batch.events.iter().zip(names).map(|(event, names)| Self::new(event, names, batch.now)).collect()
    }

    pub(super) fn id_text(&self) -> &'e str {
        self.event.envelope.id.as_str()
    }

    /// Whether something of it is due at once.
    pub(super) fn is_due(&self) -> bool {
        self.event.due_at <= self.now && !self.handlers.is_empty()
    }

    fn key(&self) -> Option<&'e str> {
        self.event.envelope.key.as_ref().map(|key| key.as_str())
    }

    fn lane(&self) -> i16 {
        i16::from(lane_of(self.key().unwrap_or_else(|| self.id_text())))
    }

    fn occurred(&self) -> Option<Timestamp> {
        let at = self.event.envelope.occurred_at;
        (at != self.now).then_some(at)
    }

    /// An event starts a correlation of its own more often than not.
    fn correlation(&self) -> Option<Vec<u8>> {
        let correlation = &*self.event.envelope.correlation_id;
        (correlation != self.id_text()).then(|| encode_id(correlation))
    }

    fn causation(&self) -> Option<Vec<u8>> {
        self.event.envelope.causation_id.as_ref().map(|id| encode_id(id))
    }

    fn headers(&self) -> Option<Cow<'e, str>> {
        let headers = &self.event.envelope.headers;
        (!headers.is_empty()).then(|| Cow::Borrowed(headers.as_json()))
    }

    fn payload(&self) -> Cow<'e, str> {
        Cow::Borrowed(self.event.envelope.payload.as_str())
    }

    /// What the texts for one event take.
    pub(super) fn values(&self, lock_class: i32) -> Vec<PgValue<'e>> {
        let envelope = &self.event.envelope;
        let mut values = Vec::with_capacity(16);
        values.extend([
            PgValue::Bytes(Some(Cow::Borrowed(self.id))),
            PgValue::Time(Some(self.now)),
            PgValue::Time(self.occurred()),
            PgValue::Int2s(self.handlers.to_vec()),
            PgValue::text(envelope.event_type.as_str()),
            PgValue::text(&envelope.source),
            PgValue::Bytes(self.correlation().map(Cow::Owned)),
            PgValue::Bytes(self.causation().map(Cow::Owned)),
            PgValue::Json(self.headers()),
            PgValue::Json(Some(self.payload())),
            PgValue::Time(Some(self.event.due_at)),
            PgValue::Int2(self.lane()),
        ]);
        if let Some(key) = self.key() {
            let number = key_number(key);
            values.extend([
                PgValue::Int4(lock_class),
                PgValue::Int4(key_slot(number)),
                PgValue::text(key),
                PgValue::Int8(Some(number)),
            ]);
        }
        values
    }
}

/// What the texts for many events take: one array for each column. One that would hold the same in every row is empty, and the
/// texts then take what stands beside it, or null.
pub(super) fn values_of<'e>(rows: &[Row<'e>], lock_class: i32, keyed: bool) -> Vec<PgValue<'e>> {
    let first = rows.first();
    let now = first.map_or(Timestamp::EPOCH, |row| row.now);
    let due = first.map_or(now, |row| row.event.due_at);
    let event_type = first.map_or("", |row| row.event.envelope.event_type.as_str());
    let source = first.map_or("", |row| &row.event.envelope.source);
    let (handlers, same) = handlers_of(rows);
    let deliveries = Deliveries::of(rows, due);
    let mut values = Vec::with_capacity(26);
    values.extend([
        PgValue::Time(Some(now)),
        PgValue::BytesList(rows.iter().map(|row| Some(Cow::Borrowed(row.id))).collect()),
        PgValue::Times(unless_all(rows, &Some(now), |row| Some(row.now))),
        PgValue::Times(unless_all(rows, &None, Row::occurred)),
        PgValue::Texts(unless_all(rows, &Some(event_type.into()), |row| {
            Some(Cow::Borrowed(row.event.envelope.event_type.as_str()))
        })),
        PgValue::Texts(unless_all(rows, &Some(source.into()), |row| Some(Cow::Borrowed(&row.event.envelope.source)))),
        PgValue::BytesList(unless_all(rows, &None, |row| row.correlation().map(Cow::Owned))),
        PgValue::BytesList(unless_all(rows, &None, |row| row.causation().map(Cow::Owned))),
        PgValue::Jsons(unless_all(rows, &None, Row::headers)),
        PgValue::Jsons(rows.iter().map(|row| Some(row.payload())).collect()),
        PgValue::Int4s(handlers.firsts),
        PgValue::Int4s(handlers.lasts),
        PgValue::Int2s(handlers.all),
        PgValue::text(event_type),
        PgValue::text(source),
        PgValue::Int2s(same),
        PgValue::BytesList(deliveries.ids),
        PgValue::Int2s(deliveries.lanes),
        PgValue::Times(deliveries.due),
        PgValue::Time(Some(due)),
    ]);
    if keyed {
        let mut slots: Vec<i32> = rows.iter().filter_map(Row::key).map(|key| key_slot(key_number(key))).collect();
        slots.sort_unstable();
        slots.dedup();
        let gate = if slots.is_empty() { 0 } else { 1 + i32::from(slots.len() > MAX_KEY_LOCKS) };
        if gate == 2 {
            slots.clear();
        }
        values.extend([
            PgValue::Texts(rows.iter().map(|row| row.key().map(Cow::Borrowed)).collect()),
            PgValue::Int8s(deliveries.keys),
            PgValue::Int4s(deliveries.places),
            PgValue::Int4(lock_class),
            PgValue::Int4s(slots),
            PgValue::Int4(gate),
        ]);
    }
    values
}

/// The column, or nothing when all its values are `usual`.
fn unless_all<'e, T: PartialEq>(rows: &[Row<'e>], usual: &T, of: impl Fn(&Row<'e>) -> T) -> Vec<T> {
    match rows.iter().position(|row| of(row) != *usual) {
        Some(_) => rows.iter().map(of).collect(),
        None => Vec::new(),
    }
}

/// The handlers of all events, one behind the other, and where those of each begin and end, from 1 on.
#[derive(Default)]
struct Handlers {
    all: Vec<i16>,
    firsts: Vec<i32>,
    lasts: Vec<i32>,
}

/// The handlers, and what every event has when they are the same: then no places are told.
fn handlers_of(rows: &[Row<'_>]) -> (Handlers, Vec<i16>) {
    let mut handlers = Handlers::default();
    for row in rows {
        handlers.all.extend(row.handlers);
    }
    if let Some((first, others)) = rows.split_first()
        && others.iter().all(|row| row.handlers == first.handlers)
    {
        return (handlers, first.handlers.to_vec());
    }
    let mut last = 0;
    for row in rows {
        handlers.firsts.push(place(last + 1));
        last += row.handlers.len();
        handlers.lasts.push(place(last));
    }
    (handlers, Vec::new())
}

/// One row for each delivery.
struct Deliveries<'e> {
    ids: Vec<Option<Cow<'e, [u8]>>>,
    lanes: Vec<i16>,
    due: Vec<Option<Timestamp>>,
    keys: Vec<Option<i64>>,
    /// The places of their events in the batch, from 1 on.
    places: Vec<i32>,
}

impl<'e> Deliveries<'e> {
    fn of(rows: &[Row<'e>], usual: Timestamp) -> Self {
        let count = rows.iter().map(|row| row.handlers.len()).sum();
        let mut all = Self {
            ids: Vec::with_capacity(count),
            lanes: Vec::with_capacity(count),
            due: Vec::new(),
            keys: Vec::with_capacity(count),
            places: Vec::with_capacity(count),
        };
        let tells_due = rows.iter().any(|row| row.event.due_at != usual);
        for (at, row) in rows.iter().enumerate() {
            let (lane, key) = (row.lane(), row.key().map(key_number));
            for _ in row.handlers {
                all.ids.push(Some(Cow::Borrowed(row.id)));
                all.lanes.push(lane);
                all.keys.push(key);
                all.places.push(place(at + 1));
                if tells_due {
                    all.due.push(Some(row.event.due_at));
                }
            }
        }
        all
    }
}

fn place(at: usize) -> i32 {
    i32::try_from(at).unwrap_or(i32::MAX)
}

/// The answer when every event of a batch was new.
pub(super) fn all_stored(batch: &AppendBatch) -> Appended {
    let outcomes = batch.events.iter().map(|event| {
        let mut names: SmallVec<[&HandlerId; 4]> = SmallVec::new();
        for name in event.handlers.iter() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        AppendOutcome::Stored { deliveries: names.len() }
    });
    Appended { outcomes: outcomes.collect() }
}
