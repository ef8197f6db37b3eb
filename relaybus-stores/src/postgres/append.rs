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

use relaybus::store::{AppendBatch, AppendOutcome, Appended, NewEvent, StoreTransaction, TransactionOptions};
use relaybus::{Error, HandlerId, Result, Timestamp};

use super::Inner;
use super::args::{encode_id, key_number, key_slot};
use super::event_row::{Added, Known, Row, all_stored, handlers_of, id_of_row, repeats};
use super::handle::{Kind, PgColumn, PgHandle, PgValue, RunError, number};
use super::transaction::unusable;

/// Largest event, in bytes of its payload and its headers: 256 MiB.
pub const MAX_EVENT_BYTES: usize = 256 << 20;
/// Keys of one batch that get a lock each; more take the gate for all keys.
const MAX_KEY_LOCKS: usize = 128;
/// How often an append starts over when others delete or extend what it was about to extend.
const ATTEMPTS: usize = 16;
/// A payload of at most this many bytes cannot be nested too deep for the server, whatever it holds.
const SHALLOW_BYTES: usize = 2 * MAX_DEPTH;
/// Arrays and objects of a payload inside each other. The server reads JSON on its stack, of which it has 2 MB by default;
/// what does not fit would fail in the middle of a transaction.
const MAX_DEPTH: usize = 4_096;
/// What an append does, for messages.
const STORING: &str = "store events";

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
fn is_due(batch: &AppendBatch) -> bool {
    batch.events.iter().any(|event| event.due_at <= batch.now && !event.handlers.is_empty())
}

pub(super) type Numbers = HashMap<HandlerId, i16>;

impl Inner {
    pub(super) async fn append(&self, mut handle: PgHandle<'_>, batch: &AppendBatch) -> Result<Appended> {
        check(batch)?;
        if batch.events.is_empty() {
            return Ok(Appended::default());
        }
        let numbers = self.handler_numbers(batch.events.iter().flat_map(|event| event.handlers.iter())).await?;
        if let Some(marks) = handle.marks() {
            if marks.running {
                return Err(unusable());
            }
            marks.running = true;
        }
        let stored = self.append_through(&mut handle, batch, &numbers).await;
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

    pub(super) async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        check(batch)?;
        if batch.events.is_empty() {
            return Ok(Appended::default());
        }
        let numbers = self.handler_numbers(batch.events.iter().flat_map(|event| event.handlers.iter())).await?;
        let stored = match self.append_in_one(batch, &numbers).await? {
            Some(stored) => stored,
            None => {
                let mut tx = self.begin(&TransactionOptions::default()).await?;
                let stored =
                    self.append_through(&mut relaybus::store::HandleOf::handle(&mut *tx), batch, &numbers).await?;
                tx.commit().await.map_err(Error::from)?;
                stored
            }
        };
        if is_due(batch) && stored.outcomes.iter().any(|one| one.deliveries() > 0) {
            self.wakeups.published();
        }
        Ok(stored)
    }

    /// Stores a batch by one statement that commits by itself. `None` when it stored nothing and a transaction is needed.
    async fn append_in_one(&self, batch: &AppendBatch, numbers: &Numbers) -> Result<Option<Appended>> {
        let fresh = batch.events.iter().all(|event| event.fresh_id);
        // Through a pooler a statement needs a transaction.
        if (batch.events.len() > 1 && !fresh) || repeats(batch) || !self.way.reach().settings {
            return Ok(None);
        }
        let all: Vec<usize> = (0..batch.events.len()).collect();
        for again in [false, true] {
            let acquired = self.pool.acquire().await;
            let mut connection = acquired.map_err(|error| super::error::store_error(STORING, error))?;
            let mut handle = PgHandle(Kind::Sqlx(&mut connection));
            match self.insert(&mut handle, batch, &all, numbers, fresh).await {
                Ok(stored) if stored.len() == batch.events.len() => return Ok(Some(all_stored(batch))),
                Ok(_) => return Ok(None),
                Err(error) if error.is_duplicate() => return Ok(None),
                // An idle connection died unseen. Storing again is safe: the ids tell.
                Err(error) if self.lost_statements(&error) => {
                    connection.close_on_drop();
                    return Ok(None);
                }
                Err(error) if error.is_disconnect() && !again => connection.close_on_drop(),
                Err(error) => return Err(error.into_error(STORING)),
            }
        }
        Ok(None)
    }

    fn lost_statements(&self, error: &RunError) -> bool {
        matches!(error, RunError::Sqlx(error) if self.way.note(error))
    }

    /// Stores a batch through a handle whose transaction is open.
    async fn append_through(
        &self,
        handle: &mut PgHandle<'_>,
        batch: &AppendBatch,
        numbers: &Numbers,
    ) -> Result<Appended> {
        let mut outcomes: Vec<Option<AppendOutcome>> = vec![None; batch.events.len()];
        for _ in 0..ATTEMPTS {
            let mut seen = HashSet::new();
            let (new, again): (Vec<usize>, Vec<usize>) = (0..batch.events.len())
                .filter(|&place| outcomes[place].is_none())
                .partition(|&place| seen.insert(batch.events[place].envelope.id.as_str()));
            let fresh = again.is_empty() && new.iter().all(|&place| batch.events[place].fresh_id);
            let stored =
                self.insert(handle, batch, &new, numbers, fresh).await.map_err(|error| error.into_error(STORING))?;
            let mut known: Vec<usize> = again;
            for place in new {
                if stored.contains(&place) {
                    outcomes[place] =
                        Some(AppendOutcome::Stored { deliveries: handlers_of(&batch.events[place], numbers).len() });
                } else {
                    known.push(place);
                }
            }
            if !known.is_empty() {
                known.sort_unstable();
                self.extend(handle, batch, &known, numbers, &mut outcomes)
                    .await
                    .map_err(|error| error.into_error(STORING))?;
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

    /// Inserts the events at `places`; which of them were not there before.
    async fn insert(
        &self,
        handle: &mut PgHandle<'_>,
        batch: &AppendBatch,
        places: &[usize],
        numbers: &Numbers,
        fresh: bool,
    ) -> std::result::Result<HashSet<usize>, RunError> {
        if let [place] = places
            && !batch.events[*place].handlers.is_empty()
        {
            let stored = self.insert_one(handle, &batch.events[*place], batch.now, numbers, fresh).await?;
            return Ok(stored.then_some(*place).into_iter().collect());
        }
        if places.is_empty() {
            return Ok(HashSet::new());
        }
        let values = self.batch_values(batch, places, numbers);
        let text = if fresh { &self.sql.append_batch_fresh } else { &self.sql.append_batch };
        let answer = handle.run(text, &values, &[PgColumn::Int8], self.prepared()).await?;
        if fresh {
            return Ok(places.iter().copied().collect());
        }
        let ordinals = answer.rows.iter().filter_map(|row| number(row.first()).ok());
        Ok(ordinals.filter_map(|ord| places.get(usize::try_from(ord - 1).ok()?).copied()).collect())
    }

    async fn insert_one(
        &self,
        handle: &mut PgHandle<'_>,
        event: &NewEvent,
        now: Timestamp,
        numbers: &Numbers,
        fresh: bool,
    ) -> std::result::Result<bool, RunError> {
        let row = Row::of(event, now);
        let mut values = vec![
            PgValue::Bytes(Some(Cow::Borrowed(&row.id))),
            PgValue::Time(Some(now)),
            PgValue::Time(row.occurred),
            PgValue::Int2s(handlers_of(event, numbers)),
            PgValue::text(event.envelope.event_type.as_str()),
            PgValue::text(&event.envelope.source),
            PgValue::Bytes(row.correlation.as_deref().map(Cow::Borrowed)),
            PgValue::Bytes(row.causation.as_deref().map(Cow::Borrowed)),
            PgValue::Text(row.headers.map(Cow::Borrowed)),
            PgValue::text(event.envelope.payload.as_str()),
            PgValue::Time(Some(event.due_at)),
            PgValue::Int2(row.lane),
        ];
        let text = match &event.envelope.key {
            None if fresh => &self.sql.append_one_fresh,
            None => &self.sql.append_one,
            Some(key) => {
                let number = key_number(key.as_str());
                values.extend([
                    PgValue::Int4(self.lock_class),
                    PgValue::Int4(key_slot(number)),
                    PgValue::text(key.as_str()),
                    PgValue::Int8(Some(number)),
                ]);
                if fresh { &self.sql.append_one_keyed_fresh } else { &self.sql.append_one_keyed }
            }
        };
        Ok(handle.run(text, &values, &[], self.prepared()).await?.affected > 0)
    }

    fn batch_values<'b>(&self, batch: &'b AppendBatch, places: &[usize], numbers: &Numbers) -> Vec<PgValue<'b>> {
        let events: Vec<&NewEvent> = places.iter().filter_map(|&place| batch.events.get(place)).collect();
        let rows: Vec<Row<'b>> = events.iter().map(|event| Row::of(event, batch.now)).collect();
        let keys: Vec<Option<i64>> =
            events.iter().map(|event| event.envelope.key.as_ref().map(|key| key_number(key.as_str()))).collect();
        let mut slots: Vec<i32> = keys.iter().flatten().map(|&key| key_slot(key)).collect();
        slots.sort_unstable();
        slots.dedup();
        let gate = if slots.is_empty() { 0 } else { 1 + i32::from(slots.len() > MAX_KEY_LOCKS) };
        if gate == 2 {
            slots.clear();
        }
        let (mut firsts, mut lasts, mut handlers) = (Vec::new(), Vec::new(), Vec::new());
        for event in &events {
            firsts.push(i32::try_from(handlers.len() + 1).unwrap_or(i32::MAX));
            handlers.extend(handlers_of(event, numbers));
            lasts.push(i32::try_from(handlers.len()).unwrap_or(i32::MAX));
        }
        let text = |of: fn(&'b NewEvent) -> &'b str| {
            PgValue::Texts(events.iter().map(|event| Some(Cow::Borrowed(of(event)))).collect())
        };
        let occurred = rows.iter().map(|row| row.occurred).collect();
        let lanes = rows.iter().map(|row| row.lane).collect();
        let headers = rows.iter().map(|row| row.headers.map(Cow::Borrowed)).collect();
        let (mut ids, mut correlations, mut causations) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            ids.push(Some(Cow::Owned(row.id)));
            correlations.push(row.correlation.map(Cow::Owned));
            causations.push(row.causation.map(Cow::Owned));
        }
        vec![
            PgValue::Time(Some(batch.now)),
            PgValue::BytesList(ids),
            PgValue::Times(occurred),
            text(|event| event.envelope.event_type.as_str()),
            text(|event| &event.envelope.source),
            PgValue::Texts(
                events.iter().map(|event| event.envelope.key.as_ref().map(|key| Cow::Borrowed(key.as_str()))).collect(),
            ),
            PgValue::BytesList(correlations),
            PgValue::BytesList(causations),
            PgValue::Texts(headers),
            text(|event| event.envelope.payload.as_str()),
            PgValue::Times(events.iter().map(|event| Some(event.due_at)).collect()),
            PgValue::Int2s(lanes),
            PgValue::Int8s(keys),
            PgValue::Int4s(firsts),
            PgValue::Int4s(lasts),
            PgValue::Int2s(handlers),
            PgValue::Int4(self.lock_class),
            PgValue::Int4s(slots),
            PgValue::Int4(gate),
        ]
    }

    /// Adds to events that are there the handlers they never had. An event that is gone meanwhile keeps no outcome, and neither
    /// does one to which somebody else added: through a connection without a transaction the locks of the look are gone.
    async fn extend(
        &self,
        handle: &mut PgHandle<'_>,
        batch: &AppendBatch,
        known: &[usize],
        numbers: &Numbers,
        outcomes: &mut [Option<AppendOutcome>],
    ) -> std::result::Result<(), RunError> {
        let mut ids: Vec<Vec<u8>> =
            known.iter().map(|&place| encode_id(batch.events[place].envelope.id.as_str())).collect();
        ids.sort_unstable();
        ids.dedup();
        let values = [PgValue::BytesList(ids.into_iter().map(|id| Some(Cow::Owned(id))).collect())];
        let columns = [PgColumn::Bytes, PgColumn::Int2s, PgColumn::Int8, PgColumn::Text];
        let answer = handle.run(&self.sql.lock_known, &values, &columns, self.prepared()).await?;
        let mut there: HashMap<Vec<u8>, Known> = answer.rows.into_iter().filter_map(Known::read).collect();
        let mut added = Added::default();
        for &place in known {
            let event = &batch.events[place];
            let id = encode_id(event.envelope.id.as_str());
            let Some(known) = there.get_mut(&id) else { continue };
            let before = added.handlers.len();
            for handler in handlers_of(event, numbers) {
                if !known.handlers.contains(&handler) {
                    known.handlers.push(handler);
                    added.push(&id, handler, known, event);
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
            let id = encode_id(batch.events[place].envelope.id.as_str());
            if wanted.contains(&id) && !extended.contains(&id) {
                outcomes[place] = None;
            }
        }
        Ok(())
    }
}
