//! Sessions: opening, ending, and taking over what a dead one held.
//!
//! # Who is authoritative
//!
//! A row of `ready` names its session in `session`; the row in `sessions` says whether that session still lives. A living
//! session has `expires_at >= 0`. The lease of a delivery is its row's `session` together with `claims`, and every write
//! about it compares both.
//!
//! # Which rules of the lease protocol the single writer makes trivial
//!
//! - *Numbered statements, late statements*: one task sends a session's writes one after another over one connection in
//!   the same process; a statement that was sent has run or never will, so no late one exists.
//! - *Groups of deliveries, taking and handing them back*: there are none; a session marks the rows it claims.
//! - *Lock order and deadlock*: there is one lock. *Snapshots inside a statement*: nothing else writes meanwhile.
//! - *Cursors*: nothing is skipped, because held rows are left out by the same range that finds free ones, and followers
//!   are in another table.
//! - *A handler's open transaction during a takeover*: it has the write lock; the takeover comes before or after it.
//!
//! What stays: a fresh id for each session; the fence in every write; charging exactly what may have started; a margin for
//! the clock; freeing marks whose answer was lost; an open commit is looked up, not guessed.
//!
//! # Takeover
//!
//! 1. The expired session is fenced (`expires_at = -1`), in one small transaction. From now on it neither claims nor
//!    renews, and completing a delivery no longer makes the next of its key its own.
//! 2. Its rows are read, outside any lock: this walks over all of `ready`, and nothing can be added to them any more.
//! 3. Each is freed by its whole key, `claims` and session: `claims + 1`, and an attempt charged, because only what may
//!    have started is in `ready`. The session's row is deleted in the same transaction.
//!
//! Interleavings: the dead session wakes up between the steps: its completions still count until step 3 reaches their
//! row, its claims mark nothing. Two that take over the same session: the second finds `claims` changed. One that dies
//! between the steps: the fenced row stays, and the next sweep begins again. Rows whose session has no row at all, which
//! these rules never leave, are freed with them.
//!
//! A session that expired but was not taken over goes on: renewal asks only whether its row is there.

use std::collections::HashMap;
use std::time::Duration;

use relaybus::store::{Lease, LeaseState, SessionRequest, Settled};
use relaybus::{Error, HandlerId, Result, Timestamp};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{ConnectOptions, Row};

use super::Inner;
use super::args::Binds;
use super::row::Candidate;
use super::sql;
use super::writer::Call;

/// How long after its expiry a session is taken over at the earliest. All processes on one file share one clock, so this
/// covers only the time between reading it and writing.
pub(super) const TAKEOVER_MARGIN: Duration = Duration::from_millis(100);
/// Rows that one call frees.
const ROWS_A_CALL: usize = 64;

/// A dispatcher's session with a [`super::SqliteStore`].
#[derive(Debug)]
pub struct SqliteSession {
    pub(super) id: i64,
    /// The session's own connection for reading candidates, opened at first use.
    pub(super) connection: Option<SqliteConnection>,
    /// A write was sent and its answer has not come: marks may be in the file that nobody knows.
    pub(super) unanswered: bool,
    /// Which group of handlers was read first.
    pub(super) turns: usize,
    /// The last candidates had keys: their followers are read along.
    pub(super) keyed: bool,
}

/// What the process remembers of a lease it handed out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// When its event was stored: tells whether its completion is late.
    pub(super) stored_at: Timestamp,
    /// The event behind it in its run.
    pub(super) next: Option<i64>,
}

/// A lease by session, position and handler.
pub(super) type HeldLeases = HashMap<(i64, i64, HandlerId), Held>;

pub(super) fn held_key(lease: &Lease) -> (i64, i64, HandlerId) {
    (lease.token.epoch, lease.position, lease.handler.clone())
}

/// A row of `ready` that a session holds.
#[derive(Debug)]
pub(super) struct HeldRow {
    handler: String,
    due_at: i64,
    position: i64,
    claims: i64,
    session: i64,
    key: Option<String>,
}

impl HeldRow {
    pub(super) fn of(head: &Candidate, session: i64) -> Self {
        Self {
            handler: head.handler.as_str().to_owned(),
            due_at: head.due_at.as_micros(),
            position: head.position,
            claims: head.claims,
            session,
            key: head.key.as_ref().map(|key| key.as_str().to_owned()),
        }
    }
}

/// Where a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: it completed or was purged.
    Gone,
    /// Pending or processing, with these claims and this session.
    There { claims: i64, session: Option<i64> },
}

impl Inner {
    pub(super) async fn open_session(&self, request: &SessionRequest) -> Result<SqliteSession> {
        let expires_at = request.now.after(request.lease).as_micros().max(0);
        let binds = Binds::default().with(request.owner.as_str()).with(expires_at);
        let text = self.sql.fixed(sql::OPEN_SESSION);
        let outcomes = self.writer.run_one(&text, binds).await.map_err(|error| self.error("open a session", error))?;
        let row = outcomes.get(1).and_then(|outcome| outcome.rows.first());
        let id = match row.map(|row| row.try_get::<i64, _>(0)) {
            Some(Ok(id)) => id,
            Some(Err(error)) => return Err(self.error("open a session", error)),
            None => return Err(Error::store("the new session has no number: set the store up again", None)),
        };
        Ok(SqliteSession { id, connection: None, unanswered: false, turns: 0, keyed: true })
    }

    pub(super) async fn close_session(&self, session: SqliteSession) -> Result<()> {
        self.fence(session.id, i64::MAX).await?;
        let rows = self.read_rows(sql::ROWS_OF_SESSION, Binds::default().with(session.id)).await?;
        self.free(&rows, 0, false, Some(session.id)).await?;
        self.held().retain(|(id, _, _), _| *id != session.id);
        self.watchers.wake();
        Ok(())
    }

    /// Takes over one expired session. How many it took over.
    pub(super) async fn take_over(&self, me: i64, now: Timestamp) -> Result<usize> {
        let limit = now.before(TAKEOVER_MARGIN).as_micros();
        let expired = self.read(sql::EXPIRED_SESSION, Binds::default().with(limit).with(me)).await?;
        let Some(row) = expired.first().and_then(|outcome| outcome.rows.first()) else { return Ok(0) };
        let dead: i64 = row.try_get(0).map_err(|error| self.error("read a session", error))?;
        if !self.fence(dead, limit).await? {
            return Ok(0);
        }
        let rows = self.read_rows(sql::ORPHANS, Binds::default()).await?;
        let ended = self.free(&rows, 1, false, Some(dead)).await?;
        self.held().retain(|(id, _, _), _| *id != dead);
        self.watchers.wake();
        // Another one that was at it too may have come first: then it was its takeover.
        Ok(usize::from(ended))
    }

    /// Ends a session whose expiry is before `limit`: it claims and renews no more.
    async fn fence(&self, session: i64, limit: i64) -> Result<bool> {
        let text = self.sql.fixed(sql::FENCE_SESSION);
        let binds = Binds::default().with(session).with(limit);
        let outcomes = self.writer.run_one(&text, binds).await.map_err(|error| self.error("end a session", error))?;
        Ok(outcomes.get(1).is_some_and(|outcome| outcome.changes > 0))
    }

    /// Frees the rows of this session that it does not know of: marks whose answer was lost.
    pub(super) async fn free_unknown(&self, session: &mut SqliteSession) -> Result<()> {
        // Behind everything the lost call may still do.
        let barrier = self.sql.fixed(sql::BARRIER);
        let binds = Binds::default().with(session.id);
        self.writer.run_one(&barrier, binds).await.map_err(|error| self.error("settle deliveries", error))?;
        let mut rows = self.read_rows(sql::ROWS_OF_SESSION, Binds::default().with(session.id)).await?;
        {
            let held = self.held();
            rows.retain(|row| !held.contains_key(&(session.id, row.position, HandlerId::stored(row.handler.clone()))));
        }
        self.free(&rows, 0, true, None).await?;
        session.unanswered = false;
        Ok(())
    }

    /// Frees rows in one transaction, puts their keys in order, and deletes the session `ended`. Whether it was there.
    pub(super) async fn free(&self, rows: &[HeldRow], charge: i64, own: bool, ended: Option<i64>) -> Result<bool> {
        let mut calls = vec![Call { text: self.sql.fixed("BEGIN IMMEDIATE;"), binds: Binds::default() }];
        for chunk in rows.chunks(ROWS_A_CALL) {
            let room = chunk.len().next_power_of_two();
            let mut binds = Binds::with_capacity(1 + room * 5).with(charge);
            for row in chunk {
                binds.push(row.handler.as_str());
                binds.push(row.due_at);
                binds.push(row.position);
                binds.push(row.claims);
                binds.push(row.session);
            }
            binds.null((room - chunk.len()) * 5);
            calls.push(Call { text: self.sql.free(own, room), binds });
        }
        let keyed: Vec<(&str, &str)> =
            rows.iter().filter_map(|row| Some((row.handler.as_str(), row.key.as_deref()?))).collect();
        for chunk in keyed.chunks(ROWS_A_CALL) {
            let room = chunk.len().next_power_of_two();
            let mut binds = Binds::with_capacity(room * 2);
            for (handler, key) in chunk {
                binds.push(*handler);
                binds.push(*key);
            }
            binds.null((room - chunk.len()) * 2);
            calls.push(Call { text: self.sql.reorder(room), binds });
        }
        calls.push(match ended {
            Some(id) => Call { text: self.sql.fixed(sql::DELETE_SESSION), binds: Binds::default().with(id) },
            None => Call { text: self.sql.fixed("COMMIT;"), binds: Binds::default() },
        });
        let answers = self.writer.run(calls).await.map_err(|error| self.error("free deliveries", error))?;
        Ok(answers.last().and_then(|last| last.first()).is_some_and(|delete| delete.changes > 0))
    }

    async fn read_rows(&self, statement: &'static str, binds: Binds) -> Result<Vec<HeldRow>> {
        let outcomes = self.read(statement, binds).await?;
        let rows = outcomes.first().map_or(&[][..], |outcome| &outcome.rows);
        rows.iter().map(held_row).collect::<Result<_, _>>().map_err(|error| self.error("read deliveries", error))
    }

    /// The connection of a session for reading.
    pub(super) async fn session_connection<'s>(
        &self,
        session: &'s mut SqliteSession,
    ) -> Result<&'s mut SqliteConnection> {
        if session.connection.is_none() {
            let opened = self.reader_options.connect().await.map_err(|error| self.error("open a connection", error))?;
            session.connection = Some(opened);
        }
        session.connection.as_mut().ok_or_else(|| Error::store("the session has no connection: open a new one", None))
    }

    /// Forgets a session that was taken over.
    pub(super) fn lost(&self, session: &SqliteSession) -> Error {
        self.held().retain(|(id, _, _), _| *id != session.id);
        Error::SessionLost
    }

    // ---- leases that this process handed out ----

    pub(super) fn held(&self) -> std::sync::MutexGuard<'_, HeldLeases> {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn forget(&self, session: i64, leases: &[Lease]) {
        if leases.is_empty() {
            return;
        }
        let mut held = self.held();
        for lease in leases {
            held.remove(&(session, lease.position, lease.handler.clone()));
        }
    }

    // ---- looking a lease up ----

    /// What became of a lease whose transaction ended without an answer. The commit may still be on its way: taking the
    /// write lock waits for it.
    pub(super) async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        let settled = self.writer.run_one(&self.sql.fixed("BEGIN IMMEDIATE; COMMIT;"), Binds::default()).await;
        settled.map_err(|error| self.error("look a delivery up", error))?;
        Ok(match self.locate(lease).await? {
            Place::Gone => LeaseState::Gone,
            Place::There { claims, session } if claims == lease.token.claims && session == Some(lease.token.epoch) => {
                LeaseState::Held
            }
            Place::There { .. } => LeaseState::Lost,
        })
    }

    /// Where the delivery of a lease is now.
    pub(super) async fn locate(&self, lease: &Lease) -> Result<Place> {
        let binds = || {
            Binds::default()
                .with(lease.handler.as_str())
                .with(lease.due_at.as_micros())
                .with(lease.position)
                .with(lease.key.as_ref().map(|key| key.as_str()))
        };
        let mut outcomes = self.read(sql::LOCATE, binds()).await?;
        if lease.key.is_none() && outcomes.iter().all(|outcome| outcome.rows.is_empty()) {
            outcomes = self.read(sql::LOCATE_MOVED, binds()).await?;
        }
        let Some(row) = outcomes.iter().flat_map(|outcome| &outcome.rows).next() else { return Ok(Place::Gone) };
        let place = || Ok(Place::There { claims: row.try_get_unchecked(0)?, session: row.try_get_unchecked(1)? });
        place().map_err(|error| self.error("read a delivery", error))
    }
}

/// The answer to a write about a lease that hit nothing.
pub(super) fn gone_or_lost(place: Place) -> Settled {
    if place == Place::Gone { Settled::Gone } else { Settled::Lost }
}

fn held_row(row: &SqliteRow) -> Result<HeldRow, sqlx::Error> {
    Ok(HeldRow {
        handler: row.try_get_unchecked(0)?,
        due_at: row.try_get_unchecked(1)?,
        position: row.try_get_unchecked(2)?,
        claims: row.try_get_unchecked(3)?,
        session: row.try_get_unchecked(4)?,
        key: row.try_get_unchecked(5)?,
    })
}
