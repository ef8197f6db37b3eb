//! Ending attempts that did not complete, and completing a delivery in its handler's transaction.
//!
//! Invariants:
//! - A reschedule, a burial and a release count `claims` up, so no later write of that attempt matches.
//! - What the session runs is rewritten in the same statement: a takeover right after it charges nothing that has ended.
//! - A completion in a handler's transaction compares `claims` alone. A takeover that meets it finds the row locked and
//!   comes back later; one that was first has counted `claims` up, so the completion finds nothing.
//! - Where the handler's transaction is not the one that the store began, nothing is completed: see `transaction`.
//!
//! Interleavings: a repeated settlement finds other claims and changes nothing. A row that moved (a rewrite of the table)
//! is found again by its place in the index.

use std::collections::HashSet;

use relaybus::store::{Completed, Lease, Settled, Settlement, Verdict};
use relaybus::{Error, Result, Timestamp};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};

use super::Inner;
use super::args::{Binds, Tid, Time};
use super::error::store_error;
use super::session::{PostgresSession, columns_of};
use super::transaction::{PgTransaction, ended_early};

const SETTLING: &str = "settle deliveries";

/// One row of a settlement.
struct Line {
    id: i64,
    tid: Tid,
    claims: i32,
    charge: i32,
    dead: bool,
    due: Option<Time>,
    error: Option<String>,
    /// The session holds it under this lease, not under a newer one.
    held: bool,
}

impl Line {
    fn of(lease: &Lease, (tid, held): (Tid, bool), verdict: &Verdict) -> Self {
        let (charge, dead, due, error) = match verdict {
            Verdict::Reschedule { due_at, error } => (1, false, Some(Time::from(*due_at)), Some(error.clone())),
            Verdict::Bury { error, charge } => (i32::from(*charge), true, None, Some(error.clone())),
            Verdict::Release => (0, false, None, None),
        };
        Self { id: lease.position, tid, claims: columns_of(lease).1, charge, dead, due, error, held }
    }
}

impl Inner {
    pub(super) async fn settle(
        &self,
        session: &mut PostgresSession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let mut lines = Vec::new();
        for settlement in settlements {
            let tid = self.place(session, &settlement.lease).await?;
            lines.push(Line::of(&settlement.lease, tid, &settlement.verdict));
            for lease in &settlement.rest {
                let tid = self.place(session, lease).await?;
                lines.push(Line::of(lease, tid, &Verdict::Release));
            }
        }
        let applied = self.send_settlement(session, &lines, now).await?;
        for line in lines.iter().filter(|line| line.held) {
            session.forget(line.id);
        }
        let mut answers = Vec::with_capacity(settlements.len());
        for settlement in settlements {
            answers.push(match applied.contains(&settlement.lease.position) {
                true => Settled::Applied,
                false => self.missed(&settlement.lease).await?,
            });
        }
        Ok(answers)
    }

    /// Where the row of a lease is: as claimed, or looked up; and whether the session holds it.
    async fn place(&self, session: &PostgresSession, lease: &Lease) -> Result<(Tid, bool)> {
        match session.holds(lease) {
            Some(held) => Ok((held.tid, true)),
            None => Ok((self.look_up_place(lease).await?, false)),
        }
    }

    pub(super) async fn look_up_place(&self, lease: &Lease) -> Result<Tid> {
        let failed = |error| store_error(SETTLING, error);
        let Some(handler) = self.known_handler(&lease.handler).await? else { return Ok(Tid::default()) };
        let text = if lease.key.is_some() { &self.sql.place_keyed } else { &self.sql.place_unkeyed };
        let binds = Binds::default().with(handler).with(Time::from(lease.due_at)).with(lease.position);
        let rows = self.ask(SETTLING, text, binds).await?;
        rows.first().map_or(Ok(Tid::default()), |row| row.try_get_unchecked(1)).map_err(failed)
    }

    async fn send_settlement(
        &self,
        session: &mut PostgresSession,
        lines: &[Line],
        now: Timestamp,
    ) -> Result<HashSet<i64>> {
        let failed = |error| store_error(SETTLING, error);
        let mut lines: Vec<&Line> = lines.iter().collect();
        lines.sort_by_key(|line| line.id);
        let ending: HashSet<i64> = lines.iter().filter(|line| line.held).map(|line| line.id).collect();
        let turn = session.next_turn();
        let running = session.running(&ending);
        let binds = Binds::default()
            .with(session.owner.as_str())
            .with(turn)
            .with(running)
            .with(Time::from(now))
            .with(lines.iter().map(|line| line.tid).collect::<Vec<_>>())
            .with(lines.iter().map(|line| line.id).collect::<Vec<_>>())
            .with(lines.iter().map(|line| line.claims).collect::<Vec<_>>())
            .with(lines.iter().map(|line| line.charge).collect::<Vec<_>>())
            .with(lines.iter().map(|line| line.dead).collect::<Vec<_>>())
            .with(lines.iter().map(|line| line.due).collect::<Vec<_>>())
            .with(lines.iter().map(|line| line.error.as_deref()).collect::<Vec<_>>());
        session.dirty = true;
        let rows = session.line.rows(&self.sql.settle, binds).await.map_err(failed)?;
        let Some(row) = rows.first() else { return Err(Error::SessionLost) };
        if !row.try_get_unchecked::<bool, _>(0).map_err(failed)? {
            return Err(Error::SessionLost);
        }
        session.dirty = false;
        let applied: Option<Vec<i64>> = row.try_get_unchecked(1).map_err(failed)?;
        Ok(applied.unwrap_or_default().into_iter().collect())
    }

    /// What became of a delivery that a write did not find under its lease.
    pub(super) async fn missed(&self, lease: &Lease) -> Result<Settled> {
        let Some(handler) = self.known_handler(&lease.handler).await? else { return Ok(Settled::Gone) };
        let there = self.locate(&[lease.position], &[handler]).await?;
        Ok(if there.is_empty() { Settled::Gone } else { Settled::Lost })
    }

    pub(super) async fn complete_in(
        &self,
        transaction: &mut PgTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        let lease = &completed.lease;
        let Some(handler) = self.known_handler(&lease.handler).await? else { return Ok(Settled::Gone) };
        let (key, claims) = columns_of(lease);
        let text = if key.is_some() { &self.sql.complete_keyed } else { &self.sql.complete_unkeyed };
        let query = sqlx::query(AssertSqlSafe(text.clone()))
            .persistent(self.prepared())
            .bind(Time::from(self.late_before(now)))
            .bind(Time::from(now))
            .bind(handler)
            .bind(Time::from(lease.due_at))
            .bind(lease.position)
            .bind(claims);
        let answer = query.fetch_one(transaction.start()?).await;
        transaction.finish();
        let read = |row: PgRow| Ok((row.try_get_unchecked(0)?, row.try_get_unchecked::<Option<i64>, _>(1)?));
        match answer.and_then(read) {
            Ok((true, Some(_))) => Ok(Settled::Applied),
            Ok((true, None)) => self.missed(lease).await,
            Ok((false, _)) => Err(ended_early(None)),
            Err(error) => Err(transaction.error("complete a delivery", error)),
        }
    }
}
