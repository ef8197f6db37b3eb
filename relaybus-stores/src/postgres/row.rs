//! Rows of a turn's answer, as read.

use std::sync::Arc;

use relaybus::store::{Claimed, Lease, LeaseToken};
use relaybus::{Envelope, EventId, EventType, HandlerId, Headers, OrderingKey, RawPayload, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::args::{Tid, Time, decode_id};
use super::session::Held;

/// What a turn did beside what it claimed.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) done: Vec<i64>,
    pub(super) alive: bool,
    /// Where the session's row is now, when it was written.
    pub(super) recorded: Option<Tid>,
    /// Deliveries picked, handed out or not.
    pub(super) picks: usize,
    /// Unkeyed candidates.
    pub(super) unkeyed: usize,
    pub(super) keyed: Vec<Scanned>,
    /// Something keyed is due, of a turn that did not look at it any closer.
    pub(super) keyed_due: bool,
}

/// What was read of a handler's keyed deliveries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanned {
    pub(super) handler: i16,
    pub(super) rows: usize,
    pub(super) at: Time,
    pub(super) id: i64,
    /// Keys whose first delivery is due.
    pub(super) heads: usize,
}

/// A delivery that a turn handed out.
#[derive(Debug)]
pub(super) struct Picked {
    pub(super) run: i64,
    pub(super) id: i64,
    pub(super) available_at: Time,
    pub(super) held: Held,
    pub(super) claimed: Claimed,
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

impl Summary {
    /// Reads the summary of a turn that claimed: its first row.
    pub(super) fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut summary = Self::read_settled(row)?;
        summary.picks = count(row.try_get_unchecked(3)?);
        // Where only unkeyed ones are looked at, all candidates are picked.
        summary.unkeyed = row.try_get_unchecked::<Option<i64>, _>(4)?.map_or(summary.picks, count);
        let handlers: Option<Vec<i16>> = row.try_get_unchecked(5)?;
        if let Some(handlers) = handlers {
            let (rows, ats): (Vec<i64>, Vec<Time>) = (row.try_get_unchecked(6)?, row.try_get_unchecked(7)?);
            let (ids, heads): (Vec<i64>, Vec<i64>) = (row.try_get_unchecked(8)?, row.try_get_unchecked(9)?);
            let all = handlers.into_iter().zip(rows).zip(ats.into_iter().zip(ids)).zip(heads);
            summary.keyed = all
                .map(|(((handler, rows), (at, id)), heads)| Scanned {
                    handler,
                    rows: count(rows),
                    at,
                    id,
                    heads: count(heads),
                })
                .collect();
        }
        summary.keyed_due = row.try_get_unchecked::<Option<bool>, _>(10)?.unwrap_or(false);
        Ok(summary)
    }

    /// Reads what every turn answers, in its first columns.
    pub(super) fn read_settled(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            done: row.try_get_unchecked::<Option<Vec<i64>>, _>(0)?.unwrap_or_default(),
            alive: row.try_get_unchecked(1)?,
            recorded: row.try_get_unchecked(2)?,
            ..Self::default()
        })
    }
}

/// First column of a delivery in a turn's answer.
const DELIVERY: usize = 11;

impl Picked {
    /// Reads a row behind the first; `None` when its handler is not one of the session. `name` tells the handler of a number.
    pub(super) fn read(
        row: &PgRow,
        epoch: i64,
        name: impl Fn(i16) -> Option<HandlerId>,
    ) -> Result<Option<Self>, sqlx::Error> {
        let at = |column: usize| DELIVERY + column;
        let (run, id): (i64, i64) = (row.try_get_unchecked(at(0))?, row.try_get_unchecked(at(1))?);
        let tid: Tid = row.try_get_unchecked(at(2))?;
        let number: i16 = row.try_get_unchecked(at(3))?;
        let key: Option<i64> = row.try_get_unchecked(at(4))?;
        let sequence: Option<i64> = row.try_get_unchecked(at(5))?;
        let lane = u8::try_from(row.try_get_unchecked::<i16, _>(at(6))?).unwrap_or(0);
        let attempts = u32::try_from(row.try_get_unchecked::<i32, _>(at(7))?).unwrap_or(0);
        let claims = i64::from(row.try_get_unchecked::<i32, _>(at(8))?);
        let available_at: Time = row.try_get_unchecked(at(9))?;
        let Some(handler) = name(number) else { return Ok(None) };
        let (event, stored_at) = envelope(row)?;
        let event = Arc::new(event);
        let token = LeaseToken { lane, epoch, claims };
        let lease = Lease::new(event.id.clone(), handler, event.key.clone(), id, available_at.into(), token);
        let held = Held {
            tid,
            handler: number,
            key,
            sequence: sequence.unwrap_or(0),
            claims,
            lane,
            due_at: available_at,
            stored_at,
        };
        Ok(Some(Self { run, id, available_at, held, claimed: Claimed::new(lease, event, attempts, stored_at) }))
    }
}

fn envelope(row: &PgRow) -> Result<(Envelope<RawPayload>, Timestamp), sqlx::Error> {
    let at = |column: usize| DELIVERY + 10 + column;
    let id = id_of(row.try_get_unchecked(at(0))?, "id")?;
    let stored_at = Timestamp::from(row.try_get_unchecked::<Time, _>(at(1))?);
    let occurred_at = row.try_get_unchecked::<Option<Time>, _>(at(2))?.map_or(stored_at, Timestamp::from);
    let event_type: String = row.try_get_unchecked(at(3))?;
    let source: &str = row.try_get_unchecked(at(4))?;
    let key: Option<String> = row.try_get_unchecked(at(5))?;
    let correlation: Option<&[u8]> = row.try_get_unchecked(at(6))?;
    let causation: Option<&[u8]> = row.try_get_unchecked(at(7))?;
    let headers: Option<String> = row.try_get_unchecked(at(8))?;
    let payload: &str = row.try_get_unchecked(at(9))?;
    let mut envelope = Envelope::new(
        EventId::stored(id),
        EventType::stored(event_type),
        source,
        RawPayload::stored(payload),
        occurred_at,
    );
    envelope.key = key.map(OrderingKey::stored);
    if let Some(headers) = headers {
        envelope.headers = Headers::stored(headers);
    }
    if let Some(bytes) = correlation {
        envelope.correlation_id = id_of(bytes, "correlation_id")?.into();
    }
    if let Some(bytes) = causation {
        envelope.causation_id = Some(id_of(bytes, "causation_id")?.into());
    }
    Ok((envelope, stored_at))
}

/// The text of an id, or the error of a row that another program wrote.
pub(super) fn id_of(bytes: &[u8], column: &str) -> Result<String, sqlx::Error> {
    decode_id(bytes).ok_or_else(|| sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: "it is not an id of this store".into(),
    })
}
