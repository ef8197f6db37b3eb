//! Sessions: opening, ending, taking over what a dead one held, and looking up a lease in doubt.
//!
//! # Takeover
//!
//! One short transaction at READ COMMITTED, separate statements, so that each sees what was committed before it:
//! the expired session's row (skipped when locked), every handler's row that has its number, the deliveries it may have been
//! running. If one of these is locked, its handler's transaction may commit: everything is rolled back and tried later, and
//! the next expired session has its turn.
//! Else all of them get a new claim (their old tokens end), what may have started is charged: every unkeyed one and the first
//! of each key. Its lanes become free, its row goes, and with it its number. A takeover gives nothing to the taker.
//!
//! A taker that stops in the middle holds up the others for half a second: then the server ends its transaction.
//!
//! Lock order: session, handlers by number, deliveries without waiting. Who holds a delivery waits for no session.
//!
//! A session that expired but was not taken over goes on: only a takeover ends it.

use std::collections::HashMap;
use std::sync::Arc;

use relaybus::store::{Lease, LeaseState, SessionRequest};
use relaybus::{Error, Result, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Inner;
use super::args::{Binds, Tid, Time};
use super::error::store_error;
use super::line::Line;
use super::session::{Mask, Own, PostgresSession, columns_of};

const OPENING: &str = "open a session";
const LOOKING: &str = "look up a delivery";
const TAKING_OVER: &str = "take over a session";
/// How often a number is tried that others want at the same moment.
const NUMBER_ATTEMPTS: usize = 300;
/// Dead sessions that one sweep takes over at most.
const TAKEOVERS: usize = 32;

/// Opens a transaction about lanes. Everybody who takes lanes waits for the rows that it locks, so a process that is stopped
/// in the middle of it must not keep them: the server ends it after half a second without a word.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '500ms'";

/// A row of `sessions`, locked.
struct Locked {
    owner: String,
    no: i16,
    in_flight: Vec<i64>,
    scan_to: Time,
}

impl Locked {
    fn read(row: &PgRow) -> std::result::Result<Self, sqlx::Error> {
        Ok(Self {
            owner: row.try_get_unchecked(0)?,
            no: row.try_get_unchecked(1)?,
            in_flight: row.try_get_unchecked(2)?,
            scan_to: row.try_get_unchecked(3)?,
        })
    }
}

/// A delivery that a session may be running, locked.
struct HeldRow {
    id: i64,
    tid: Tid,
    handler: i16,
    key: Option<i64>,
    sequence: i64,
    lane: i16,
}

impl HeldRow {
    fn read(row: &PgRow) -> std::result::Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get_unchecked(0)?,
            tid: row.try_get_unchecked(1)?,
            handler: row.try_get_unchecked(2)?,
            key: row.try_get_unchecked(3)?,
            sequence: row.try_get_unchecked::<Option<i64>, _>(4)?.unwrap_or(0),
            lane: row.try_get_unchecked(5)?,
        })
    }
}

impl Inner {
    pub(super) async fn open_session(&self, request: &SessionRequest) -> Result<PostgresSession> {
        self.forget_handlers();
        let numbers = self.handler_numbers(request.handlers.iter()).await?;
        let mut handlers: Vec<Own> = numbers.iter().map(|(name, id)| Own::new(*id, name.clone())).collect();
        handlers.sort_by_key(|own| own.id);
        let timeout = (request.lease / 3).clamp(super::SHORTEST_TIMEOUT, super::LONGEST_TIMEOUT);
        let line = Line::new(self.builder.connection()?, timeout, Arc::clone(&self.way));
        let mut session = PostgresSession::new(request.owner.clone(), 0, 0, line, handlers);
        self.insert_session(&mut session, request).await?;
        // What is free is taken at once; a failure here is repaired by the first sweep.
        session.unsure = self.share_lanes(&mut session, request.now).await.is_err();
        Ok(session)
    }

    async fn insert_session(&self, session: &mut PostgresSession, request: &SessionRequest) -> Result<()> {
        let failed = |error| store_error(OPENING, error);
        let ids: Vec<i16> = session.handlers.iter().map(|own| own.id).collect();
        for _ in 0..NUMBER_ATTEMPTS {
            let binds = Binds::default()
                .with(session.owner.as_str())
                .with(Time::from(request.now.after(request.lease)))
                .with(ids.as_slice());
            let rows = session.line.rows(&self.sql.insert_session, binds).await.map_err(failed)?;
            if let Some(row) = rows.first() {
                session.no = row.try_get_unchecked(0).map_err(failed)?;
                session.epoch = row.try_get_unchecked(1).map_err(failed)?;
                return Ok(());
            }
            let rows = session.line.rows(&self.sql.free_numbers, Binds::default()).await.map_err(failed)?;
            let free: i64 = rows.first().map_or(Ok(0), |row| row.try_get_unchecked(0)).map_err(failed)?;
            if free == 0 && self.take_over_expired(session, request.now).await? == 0 {
                return Err(Error::store_retryable(
                    "could not open a session, because 255 are open: wait until one ends",
                    "no number is free",
                ));
            }
        }
        Err(Error::store_retryable(
            "could not open a session, because others open theirs: try again",
            "no number was got",
        ))
    }

    /// Takes over the sessions that have expired. How many.
    pub(super) async fn take_over_expired(&self, session: &mut PostgresSession, now: Timestamp) -> Result<usize> {
        let mut taken = 0;
        // One of whose deliveries is being completed keeps nobody from the others.
        let mut passed = vec![session.owner.clone()];
        while taken < TAKEOVERS && passed.len() <= TAKEOVERS {
            match self.take_over_one(&mut session.line, &passed, now).await {
                Ok(Some((owner, freed))) => {
                    taken += usize::from(freed);
                    passed.push(owner);
                }
                Ok(None) => break,
                Err(error) => {
                    // What is open ends with the connection.
                    session.line.hang_up();
                    return Err(store_error(TAKING_OVER, error));
                }
            }
        }
        Ok(taken)
    }

    /// Takes over the session that expired first, apart from those that were `passed`: whose, and whether it was possible.
    async fn take_over_one(
        &self,
        line: &mut Line,
        passed: &[String],
        now: Timestamp,
    ) -> std::result::Result<Option<(String, bool)>, sqlx::Error> {
        line.run(BEGIN).await?;
        let limit = Time::from(now.before(self.builder.margin));
        let rows = line.rows(&self.sql.lock_expired, Binds::default().with(limit).with(passed)).await?;
        let found = match rows.first() {
            Some(row) => {
                let dead = Locked::read(row)?;
                let freed = self.free(line, &dead, true).await?;
                Some((dead.owner, freed))
            }
            None => None,
        };
        let freed = found.as_ref().is_some_and(|(_, freed)| *freed);
        line.run(if freed { "COMMIT" } else { "ROLLBACK" }).await?;
        Ok(found)
    }

    /// Frees everything of a session whose row is locked, and deletes the row. `false` when a delivery of it is locked.
    async fn free(&self, line: &mut Line, dead: &Locked, charge: bool) -> std::result::Result<bool, sqlx::Error> {
        let rows = line.rows(&self.sql.lock_pairs, Binds::default().with(dead.no)).await?;
        let (mut ids, mut owners, mut lanes) = (Vec::new(), Vec::new(), HashMap::new());
        for row in &rows {
            let id = row.try_get_unchecked::<i16, _>(0)?;
            let bytes: &[u8] = row.try_get_unchecked(1)?;
            ids.push(id);
            owners.push(
                bytes.iter().map(|&owner| if i16::from(owner) == dead.no { 0 } else { owner }).collect::<Vec<u8>>(),
            );
            lanes.insert(id, Mask::owned(bytes, dead.no));
        }
        if !dead.in_flight.is_empty() && !ids.is_empty() {
            // What the row lists in a lane that it does not own is another's by now.
            let owned = |row: &HeldRow| {
                let lane = u8::try_from(row.lane).ok();
                lane.is_some_and(|lane| lanes.get(&row.handler).is_some_and(|mask| mask.has(lane)))
            };
            let read = |rows: Vec<PgRow>| -> std::result::Result<Vec<HeldRow>, sqlx::Error> {
                let all = rows.iter().map(HeldRow::read).collect::<std::result::Result<Vec<_>, _>>()?;
                Ok(all.into_iter().filter(|row| owned(row)).collect())
            };
            let binds = || Binds::default().with(ids.as_slice()).with(dead.scan_to).with(dead.in_flight.as_slice());
            let text = if charge { &self.sql.lock_held } else { &self.sql.lock_held_waiting };
            let held = read(line.rows(text, binds()).await?)?;
            if charge && read(line.rows(&self.sql.count_held, binds()).await?)?.len() != held.len() {
                return Ok(false);
            }
            let charges: Vec<i32> = held.iter().map(|row| i32::from(charge && may_have_started(row, &held))).collect();
            let tids: Vec<Tid> = held.iter().map(|row| row.tid).collect();
            let numbers: Vec<i64> = held.iter().map(|row| row.id).collect();
            line.rows(&self.sql.free_held, Binds::default().with(tids).with(numbers).with(charges)).await?;
        }
        if !ids.is_empty() {
            line.rows(&self.sql.free_pairs, Binds::default().with(ids).with(owners)).await?;
        }
        line.rows(&self.sql.delete_session, Binds::default().with(dead.owner.as_str())).await?;
        Ok(true)
    }

    /// Hands back everything and deletes the session's row, in one transaction.
    pub(super) async fn close_session(&self, mut session: PostgresSession) -> Result<()> {
        let failed = |error| store_error("close a session", error);
        let turn = session.next_turn();
        session.line.run(BEGIN).await.map_err(failed)?;
        let binds = Binds::default().with(session.owner.as_str()).with(turn);
        let rows = session.line.rows(&self.sql.lock_own, binds).await.map_err(failed)?;
        if let Some(row) = rows.first() {
            let mut own = Locked::read(row).map_err(failed)?;
            if !session.dirty {
                // The row may list what was settled since: to look for that would pass over everything that is due.
                own.in_flight.retain(|id| session.held.contains_key(id));
            }
            self.free(&mut session.line, &own, false).await.map_err(failed)?;
        }
        session.line.run("COMMIT").await.map_err(failed)?;
        // What was handed back is anybody's now.
        self.wakeups.published();
        Ok(())
    }

    pub(super) async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        let failed = |error| store_error(LOOKING, error);
        let Some(handler) = self.known_handler(&lease.handler).await? else { return Ok(LeaseState::Gone) };
        let (key, claims) = columns_of(lease);
        let text = if key.is_some() { &self.sql.place_keyed } else { &self.sql.place_unkeyed };
        // Waits for a transaction that may still be completing it.
        let binds = Binds::default().with(handler).with(Time::from(lease.due_at)).with(lease.position);
        let found = self.ask(LOOKING, text, binds).await?;
        if let Some(row) = found.first() {
            let now: i32 = row.try_get_unchecked(0).map_err(failed)?;
            return Ok(if now == claims { LeaseState::Held } else { LeaseState::Lost });
        }
        let there = self.locate(&[lease.position], &[handler]).await?;
        Ok(if there.is_empty() { LeaseState::Gone } else { LeaseState::Lost })
    }

    /// Which of these deliveries are anywhere: not where they were claimed, but not gone either.
    pub(super) async fn locate(&self, ids: &[i64], handlers: &[i16]) -> Result<Vec<i64>> {
        let rows = self.ask(LOOKING, &self.sql.locate, Binds::default().with(ids).with(handlers)).await?;
        rows.iter().map(|row| row.try_get_unchecked(0).map_err(|error| store_error(LOOKING, error))).collect()
    }
}

/// Whether a delivery may have been running: an unkeyed one, or the first of its key.
fn may_have_started(row: &HeldRow, all: &[HeldRow]) -> bool {
    row.key.is_none()
        || !all
            .iter()
            .any(|other| (other.handler, other.key) == (row.handler, row.key) && other.sequence < row.sequence)
}
