//! Storing events with their deliveries.
//!
//! Invariant: an event is stored with all its deliveries or not at all, and within the caller's transaction. Each event is
//! one insert into a view whose trigger writes the event and its deliveries (`schema.sql`): one statement, so that a
//! dropped future cannot leave an event without deliveries in a transaction that is committed all the same.
//!
//! Order: `seq` is drawn under the only write lock, so its order is the commit order. A batch is written in its own order:
//! events with fresh ids in groups, events whose id may be known one by one.
//!
//! What cannot be stored fails before the first statement.

use std::sync::Arc;

use relaybus::store::{AppendBatch, AppendOutcome, Appended, NewEvent};
use relaybus::{Error, Result};
use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::args::{Binds, encode_id, json_list};
use super::sql::Sql;
use super::writer::{Call, Outcome, run_text};

/// Most events in one statement.
pub(super) const MAX_EVENTS_A_CALL: usize = 128;
/// Most bytes of payload, headers and key together. SQLite's own limit is 1 GB.
pub const MAX_EVENT_BYTES: usize = 256 * 1024 * 1024;
/// Binds of one event.
const BINDS_AN_EVENT: usize = 12;

/// A piece of a batch that is written by one call.
enum Piece<'a> {
    /// Events whose ids are new.
    Fresh(&'a [NewEvent]),
    /// An event whose id may be known.
    Known(&'a NewEvent),
}

/// Splits a batch into calls, in its order.
fn pieces(events: &[NewEvent]) -> impl Iterator<Item = Piece<'_>> {
    events.chunk_by(|a, b| a.fresh_id && b.fresh_id).flat_map(|group| {
        group.chunks(MAX_EVENTS_A_CALL).map(|chunk| match chunk {
            [event] if !event.fresh_id => Piece::Known(event),
            fresh => Piece::Fresh(fresh),
        })
    })
}

/// Refuses what SQLite cannot keep.
pub(super) fn check(batch: &AppendBatch) -> Result<()> {
    for event in &batch.events {
        let envelope = &event.envelope;
        let key = envelope.key.as_ref().map_or(0, |key| key.as_str().len());
        let bytes = envelope.payload.as_str().len() + envelope.headers.as_json().len() + key;
        if bytes > MAX_EVENT_BYTES {
            return Err(Error::store(
                format!(
                    "the event `{}` has {bytes} bytes, more than {MAX_EVENT_BYTES}: store large data elsewhere and send its name",
                    envelope.id
                ),
                None,
            ));
        }
    }
    Ok(())
}

/// The error of a batch that came through a connection on which no transaction is open.
pub(super) fn without_transaction(batch: &AppendBatch) -> Error {
    let event_type = batch.events.first().map_or("", |event| event.envelope.event_type.as_str());
    Error::TransactionRequired {
        message: format!(
            "the connection that `{event_type}` is published through has no open transaction: begin one on it, or use `publish_detached`"
        ),
    }
}

/// The calls that write a batch in a transaction of their own.
pub(super) fn calls_alone(sql: &Sql, batch: &AppendBatch) -> Vec<Call> {
    let pieces: Vec<Piece<'_>> = pieces(&batch.events).collect();
    let last = pieces.len().saturating_sub(1);
    let mut calls = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        calls.push(call_of(sql, piece, batch, index == 0, index == last));
    }
    calls
}

/// Writes a batch in the transaction that is open on `connection`.
pub(super) async fn append_in(
    sql: &Sql,
    connection: &mut SqliteConnection,
    batch: &AppendBatch,
) -> std::result::Result<Appended, sqlx::Error> {
    let mut appended = Appended::default();
    for piece in pieces(&batch.events) {
        let Call { text, binds } = call_of(sql, &piece, batch, false, false);
        let outcomes = run_text(connection, text, binds).await?;
        read_outcomes(&piece, &outcomes, &mut appended)?;
    }
    Ok(appended)
}

/// The outcomes of a batch that was written by [`calls_alone`].
pub(super) fn outcomes_alone(
    batch: &AppendBatch,
    answers: &[Vec<Outcome>],
) -> std::result::Result<Appended, sqlx::Error> {
    let mut appended = Appended::default();
    for (piece, outcomes) in pieces(&batch.events).zip(answers) {
        read_outcomes(&piece, outcomes, &mut appended)?;
    }
    Ok(appended)
}

fn call_of(sql: &Sql, piece: &Piece<'_>, batch: &AppendBatch, begin: bool, commit: bool) -> Call {
    let now = batch.now.as_micros();
    match piece {
        Piece::Fresh(events) => {
            let rows = events.len().next_power_of_two();
            let mut binds = Binds::with_capacity(rows * BINDS_AN_EVENT);
            let mut lists = HandlerLists::default();
            for event in *events {
                bind_event(&mut binds, &mut lists, event, now);
            }
            binds.null((rows - events.len()) * BINDS_AN_EVENT);
            Call { text: sql.append(rows, begin, commit), binds }
        }
        Piece::Known(event) => {
            let mut binds = Binds::with_capacity(BINDS_AN_EVENT);
            bind_event(&mut binds, &mut HandlerLists::default(), event, now);
            Call { text: sql.receive(begin, commit), binds }
        }
    }
}

/// Remembers the JSON text of the last list of handlers: the events of a batch mostly share one.
#[derive(Default)]
struct HandlerLists(Option<(Arc<[relaybus::HandlerId]>, Arc<str>)>);

impl HandlerLists {
    fn text(&mut self, handlers: &Arc<[relaybus::HandlerId]>) -> Arc<str> {
        if let Some((known, text)) = &self.0
            && Arc::ptr_eq(known, handlers)
        {
            return Arc::clone(text);
        }
        let text: Arc<str> = json_list(handlers.iter().map(relaybus::HandlerId::as_str)).into();
        self.0 = Some((Arc::clone(handlers), Arc::clone(&text)));
        text
    }
}

fn bind_event(binds: &mut Binds, lists: &mut HandlerLists, event: &NewEvent, now: i64) {
    let envelope = &event.envelope;
    let occurred_at = envelope.occurred_at.as_micros();
    binds.push(encode_id(envelope.id.as_str()));
    binds.push(now);
    binds.push((occurred_at != now).then_some(occurred_at));
    binds.push(envelope.event_type.as_str());
    binds.push((!envelope.source.is_empty()).then_some(&*envelope.source));
    binds.push(envelope.key.as_ref().map(|key| key.as_str()));
    let own = *envelope.correlation_id == *envelope.id.as_str();
    binds.push((!own).then(|| encode_id(&envelope.correlation_id)));
    binds.push(envelope.causation_id.as_ref().map(|id| encode_id(id)));
    binds.push(envelope.payload.as_str());
    binds.push(envelope.headers.as_json());
    binds.push(lists.text(&event.handlers));
    binds.push(event.due_at.as_micros());
}

fn read_outcomes(
    piece: &Piece<'_>,
    outcomes: &[Outcome],
    appended: &mut Appended,
) -> std::result::Result<(), sqlx::Error> {
    match piece {
        Piece::Fresh(events) => appended
            .outcomes
            .extend(events.iter().map(|event| AppendOutcome::Stored { deliveries: event.handlers.len() })),
        Piece::Known(event) => {
            let row = outcomes.iter().flat_map(|outcome| &outcome.rows).next();
            appended.outcomes.push(match row {
                None => AppendOutcome::Stored { deliveries: event.handlers.len() },
                Some(row) => {
                    let added: i64 = row.try_get(0)?;
                    AppendOutcome::Known { added: usize::try_from(added).unwrap_or(0) }
                }
            });
        }
    }
    Ok(())
}
