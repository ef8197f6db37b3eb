//! Appending: events and their deliveries in one statement.
//!
//! Invariants:
//! - *Commit order of a key*: its sequence is drawn under the key's advisory lock, which is held to the end of the
//!   transaction. A batch of very many keys takes one lock for all of them, so that the server's lock table holds it.
//! - *Once by id*: the primary key decides. Whoever finds the event there locks its row and adds the handlers it never had;
//!   a purge locks the same row, so one of them sees the other.
//! - *Nothing half*: what cannot be stored is refused before the first statement.
//!
//! Interleavings: two appends of one id: the second waits for the first's end and finds the event, or stores it. An append
//! and a purge: the append finds the row gone after its wait and stores the event anew. Two that add a handler to one event
//! without a transaction: the second adds to a row that has it by then, so it adds nothing and looks again.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use relaybus::store::{AppendBatch, AppendOutcome, Appended, NewEvent};
use relaybus::{Error, Result};

use super::Inner;
use super::args::encode_id;
use super::event_row::{Added, Known, Names, Numbers, Row, id_of_row, values_of};
use super::handle::{PgColumn, PgHandle, PgValue, RunError, number};
use super::transaction::unusable;

/// Largest event, in bytes of its payload and its headers: 256 MiB.
pub const MAX_EVENT_BYTES: usize = 256 << 20;
/// How often an append starts over when others delete or extend what it was about to extend.
const ATTEMPTS: usize = 16;
/// A payload of at most this many bytes cannot be nested too deep for the server, whatever it holds.
const SHALLOW_BYTES: usize = 2 * MAX_DEPTH;
/// Arrays and objects of a payload inside each other. The server reads JSON on its stack, of which it has 2 MB by default;
/// what does not fit would fail in the middle of a transaction.
const MAX_DEPTH: usize = 4_096;
/// What an append does, for messages.
pub(super) const STORING: &str = "store events";

/// Refuses what PostgreSQL could not keep.
pub(super) fn check(batch: &AppendBatch) -> Result<()> {
    for event in &batch.events {
        let envelope = &event.envelope;
        let bytes = envelope.payload.as_str().len().saturating_add(envelope.headers.as_json().len());
        if bytes > MAX_EVENT_BYTES {
            return Err(Error::store(
                format!(
                    "an event of type `{}` has {bytes} bytes, more than {MAX_EVENT_BYTES}: store large data elsewhere and send its name",
                    envelope.event_type
                ),
                None,
            ));
        }
        let texts = [envelope.payload.as_str(), envelope.headers.as_json(), &envelope.source];
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(Error::store(
                format!("an event of type `{}` has a NUL character: strip or encode it", envelope.event_type),
                None,
            ));
        }
        if is_too_deep(envelope.payload.as_str()) {
            return Err(Error::store(
                format!(
                    "the payload of an event of type `{}` is nested more than {MAX_DEPTH} deep: flatten it",
                    envelope.event_type
                ),
                None,
            ));
        }
    }
    Ok(())
}

/// Whether more arrays and objects of a JSON text are inside each other than the server reads.
fn is_too_deep(json: &str) -> bool {
    if json.len() <= SHALLOW_BYTES {
        return false;
    }
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Whether something of the batch is due at once.
pub(super) fn is_due(batch: &AppendBatch) -> bool {
    batch.events.iter().any(|event| event.due_at <= batch.now && !event.handlers.is_empty())
}

impl Inner {
    pub(super) async fn append(&self, mut handle: PgHandle<'_>, batch: &AppendBatch) -> Result<Appended> {
        check(batch)?;
        if batch.events.is_empty() {
            return Ok(Appended::default());
        }
        let names = self.names_of(&batch.events.iter().collect::<Vec<_>>()).await?;
        if let Some(marks) = handle.marks() {
            if marks.running {
                return Err(unusable());
            }
            marks.running = true;
        }
        let stored = self.append_through(&mut handle, &Row::all(batch, &names), true).await;
        let due =
            is_due(batch) && stored.as_ref().is_ok_and(|stored| stored.outcomes.iter().any(|one| one.deliveries() > 0));
        if let Some(marks) = handle.marks() {
            marks.running = false;
            marks.published |= due;
        } else if due && let Some(channel) = self.wakeups.inside() {
            let values = [PgValue::text(channel)];
            handle
                .run(&self.sql.notify, &values, &[], self.prepared())
                .await
                .map_err(|error| error.into_error(STORING))?;
        }
        stored
    }

    /// What each event is stored under. For a statement of the store's own its connection is taken before.
    pub(super) async fn names_of(&self, events: &[&NewEvent]) -> Result<Vec<Names>> {
        // Events of one type share their list.
        let shares = |place: usize| {
            let before = place.checked_sub(1).and_then(|before| events.get(before));
            before.is_some_and(|before| Arc::ptr_eq(&before.handlers, &events[place].handlers))
        };
        let lists = events.iter().enumerate().filter(|(place, _)| !shares(*place));
        let known = self.handler_numbers(lists.flat_map(|(_, event)| event.handlers.iter())).await?;
        let mut all: Vec<Names> = Vec::with_capacity(events.len());
        for (place, event) in events.iter().enumerate() {
            let handlers = match all.last() {
                Some(before) if shares(place) => before.handlers.clone(),
                _ => {
                    let mut numbers = Numbers::new();
                    for &number in event.handlers.iter().filter_map(|name| known.get(name)) {
                        if !numbers.contains(&number) {
                            numbers.push(number);
                        }
                    }
                    numbers
                }
            };
            all.push(Names { id: encode_id(event.envelope.id.as_str()), handlers });
        }
        Ok(all)
    }

    /// Stores a batch through a handle whose transaction is open. Where fresh ids are not `new`, they may be there already.
    pub(super) async fn append_through(
        &self,
        handle: &mut PgHandle<'_>,
        rows: &[Row<'_>],
        new: bool,
    ) -> Result<Appended> {
        let mut outcomes: Vec<Option<AppendOutcome>> = vec![None; rows.len()];
        for _ in 0..ATTEMPTS {
            let mut seen = HashSet::new();
            let (first, again): (Vec<usize>, Vec<usize>) = (0..rows.len())
                .filter(|&place| outcomes[place].is_none())
                .partition(|&place| seen.insert(rows[place].id_text()));
            let fresh = new && again.is_empty() && first.iter().all(|&place| rows[place].event.fresh_id);
            let sent: Vec<Row<'_>> = first.iter().map(|&place| rows[place]).collect();
            let stored = self.insert_rows(handle, &sent, fresh).await.map_err(|error| error.into_error(STORING))?;
            let mut known: Vec<usize> = again;
            for (at, place) in first.into_iter().enumerate() {
                if stored.contains(at) {
                    outcomes[place] = Some(AppendOutcome::Stored { deliveries: rows[place].handlers.len() });
                } else {
                    known.push(place);
                }
            }
            if !known.is_empty() {
                known.sort_unstable();
                self.extend(handle, rows, &known, &mut outcomes).await.map_err(|error| error.into_error(STORING))?;
            }
            if outcomes.iter().all(Option::is_some) {
                return Ok(Appended { outcomes: outcomes.into_iter().flatten().collect() });
            }
        }
        Err(Error::store_retryable(
            "could not store events, because others change them all the time: try again",
            "no end",
        ))
    }

    /// Inserts events; which of them were not there before.
    pub(super) async fn insert_rows(
        &self,
        handle: &mut PgHandle<'_>,
        rows: &[Row<'_>],
        fresh: bool,
    ) -> std::result::Result<Stored, RunError> {
        if rows.is_empty() {
            return Ok(Stored::All(0));
        }
        if let [row] = rows
            && !row.handlers.is_empty()
        {
            let text = match (&row.event.envelope.key, fresh) {
                (None, true) => &self.sql.append_one_fresh,
                (None, false) => &self.sql.append_one,
                (Some(_), true) => &self.sql.append_one_keyed_fresh,
                (Some(_), false) => &self.sql.append_one_keyed,
            };
            let answer = handle.run(text, &row.values(self.lock_class), &[], self.prepared()).await?;
            return Ok(if answer.affected > 0 { Stored::All(1) } else { Stored::Some(HashSet::new()) });
        }
        let keyed = !fresh || rows.iter().any(|row| row.event.envelope.key.is_some());
        let values = values_of(rows, self.lock_class, keyed);
        if fresh {
            let text = if keyed { &self.sql.append_batch_fresh_keyed } else { &self.sql.append_batch_fresh };
            handle.run(text, &values, &[], self.prepared()).await?;
            return Ok(Stored::All(rows.len()));
        }
        let answer = handle.run(&self.sql.append_batch, &values, &[PgColumn::Int8], self.prepared()).await?;
        let places = answer.rows.iter().filter_map(|row| usize::try_from(number(row.first()).ok()? - 1).ok());
        Ok(Stored::Some(places.collect()))
    }

    /// Adds to events that are there the handlers they never had. An event that is gone meanwhile keeps no outcome, and neither
    /// does one to which somebody else added: through a connection without a transaction the locks of the look are gone.
    async fn extend(
        &self,
        handle: &mut PgHandle<'_>,
        rows: &[Row<'_>],
        known: &[usize],
        outcomes: &mut [Option<AppendOutcome>],
    ) -> std::result::Result<(), RunError> {
        let mut ids: Vec<&[u8]> = known.iter().map(|&place| rows[place].id).collect();
        ids.sort_unstable();
        ids.dedup();
        let values = [PgValue::BytesList(ids.into_iter().map(|id| Some(Cow::Borrowed(id))).collect())];
        let columns = [PgColumn::Bytes, PgColumn::Int2s, PgColumn::Int8, PgColumn::Text];
        let answer = handle.run(&self.sql.lock_known, &values, &columns, self.prepared()).await?;
        let mut there: HashMap<Vec<u8>, Known> = answer.rows.into_iter().filter_map(Known::read).collect();
        let mut added = Added::default();
        for &place in known {
            let row = &rows[place];
            let Some(known) = there.get_mut(row.id) else { continue };
            let before = added.handlers.len();
            for &handler in row.handlers {
                if !known.handlers.contains(&handler) {
                    known.handlers.push(handler);
                    added.push(row.id, handler, known, row.event);
                }
            }
            outcomes[place] = Some(AppendOutcome::Known { added: added.handlers.len() - before });
        }
        if added.handlers.is_empty() {
            return Ok(());
        }
        let wanted = added.events();
        let answer = handle.run(&self.sql.add_handlers, &added.values(), &[PgColumn::Bytes], self.prepared()).await?;
        let extended: HashSet<Vec<u8>> = answer.rows.into_iter().filter_map(id_of_row).collect();
        for &place in known {
            if wanted.contains(rows[place].id) && !extended.contains(rows[place].id) {
                outcomes[place] = None;
            }
        }
        Ok(())
    }
}

/// Which of the rows of a statement were not there before.
pub(super) enum Stored {
    All(usize),
    Some(HashSet<usize>),
}

impl Stored {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(count) => *count,
            Self::Some(places) => places.len(),
        }
    }

    fn contains(&self, place: usize) -> bool {
        match self {
            Self::All(count) => place < *count,
            Self::Some(places) => places.contains(&place),
        }
    }
}
