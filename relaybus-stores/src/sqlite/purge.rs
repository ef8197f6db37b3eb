//! Deleting what is past its retention.
//!
//! Invariant: an event is deleted only when no delivery of it is left, its last completion is past the cut, and nothing
//! was added to it since that was read. The newest event is never deleted, so that its number is not used again.
//!
//! Candidates and what still needs them are read outside the lock, a range of numbers at a time; the deletes name each event
//! by its number and the `handlers` that were read. Whoever adds a delivery to an old event changes `handlers`, and
//! requeueing only moves a delivery that was counted, so nothing that came in between is missed.
//!
//! A completion is recorded only when it came later than [`SLACK`] after its event. Without a record the retention counts
//! from creation plus the slack: never too early, at most the slack late.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use relaybus::store::{PurgeRequest, Purged};
use relaybus::{Result, Timestamp};
use sqlx::Row;

use super::Inner;
use super::args::Binds;
use super::writer::{Call, Outcome};

/// Completions within this time of their event are not recorded.
const SLACK: Duration = Duration::from_secs(60);
/// Rows that one call deletes.
const ROWS_A_CALL: usize = 128;
/// Most rows of one purge call.
const MAX_ROWS: usize = 10_000;

/// Events of a range that may be deleted. `$1` after, `$2` cut, `$3` how many.
const CANDIDATES: &str = "SELECT e.seq, e.handlers, coalesce(c.completed_at, \
    CASE WHEN e.handlers = '[]' THEN e.created_at ELSE e.created_at + $4 END) < $2 \
    FROM {p}events e LEFT JOIN {p}event_completions c ON c.seq = e.seq \
    WHERE e.seq > $1 ORDER BY e.seq LIMIT $3 + 0;";
/// Numbers of a range that still have deliveries; reads all of them, outside any lock.
const BUSY: &str = "SELECT seq FROM {p}ready WHERE seq BETWEEN $1 AND $2 \
    UNION SELECT seq FROM {p}waiting WHERE seq BETWEEN $1 AND $2 UNION SELECT seq FROM {p}dead WHERE seq BETWEEN $1 AND $2;";
const DELETE_EVENT: &str = "DELETE FROM {p}events WHERE seq = $1 AND handlers = $2 AND seq < (SELECT max(seq) FROM {p}events);\n\
    DELETE FROM {p}event_completions WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM {p}events WHERE seq = $1);\n\
    DELETE FROM {p}completed_deliveries WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM {p}events WHERE seq = $1);";
/// Dead deliveries past their retention. `$1` cut, `$2` how many.
const OLD_DEAD: &str = "SELECT seq, handler FROM {p}dead WHERE died_at < $1 ORDER BY died_at LIMIT $2 + 0;";
const DELETE_DEAD: &str = "DELETE FROM {p}dead WHERE seq = $1 AND handler = $2 AND died_at < $3;";

/// The statements of this module, by name.
pub(super) const STATEMENTS: [(&str, &str); 5] = [
    ("purge_candidates", CANDIDATES),
    ("purge_busy", BUSY),
    ("purge_event", DELETE_EVENT),
    ("purge_old_dead", OLD_DEAD),
    ("purge_dead", DELETE_DEAD),
];

/// The latest creation of an event whose completion now is late.
pub(super) fn latest_creation(now: Timestamp) -> i64 {
    now.before(SLACK).as_micros()
}

impl Inner {
    pub(super) async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        let mut purged = Purged::default();
        let limit = request.limit.min(MAX_ROWS);
        if limit == 0 {
            return Ok(purged);
        }
        if let Some(before) = request.dead_before {
            self.purge_dead(before, limit, &mut purged).await?;
        }
        let left = limit - usize::try_from(purged.dead).unwrap_or(limit).min(limit);
        match request.completed_before {
            Some(before) if left > 0 => self.purge_events(before, left, &mut purged).await?,
            Some(_) => purged.more = true,
            None => {}
        }
        Ok(purged)
    }

    async fn purge_dead(&self, before: Timestamp, limit: usize, purged: &mut Purged) -> Result<()> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let outcomes = self.read(OLD_DEAD, Binds::default().with(before.as_micros()).with(most)).await?;
        let rows = outcomes.first().map_or(&[][..], |outcome| &outcome.rows);
        let mut deletes = Vec::with_capacity(rows.len());
        for row in rows {
            let (seq, handler): (i64, String) = (self.column(row.try_get(0))?, self.column(row.try_get(1))?);
            deletes.push(Binds::default().with(seq).with(handler).with(before.as_micros()));
        }
        purged.more |= rows.len() >= limit;
        for outcomes in self.delete(DELETE_DEAD, deletes).await? {
            purged.dead += outcomes.first().map_or(0, |outcome| outcome.changes);
        }
        Ok(())
    }

    async fn purge_events(&self, before: Timestamp, limit: usize, purged: &mut Purged) -> Result<()> {
        let after = self.purge_cursor.load(Ordering::Relaxed);
        let slack = i64::try_from(SLACK.as_micros()).unwrap_or(i64::MAX);
        let binds = Binds::default()
            .with(after)
            .with(before.as_micros())
            .with(i64::try_from(limit).unwrap_or(i64::MAX))
            .with(slack);
        let outcomes = self.read(CANDIDATES, binds).await?;
        let rows = outcomes.first().map_or(&[][..], |outcome| &outcome.rows);
        let mut range = Vec::with_capacity(rows.len());
        for row in rows {
            let (seq, handlers, old): (i64, String, bool) =
                (self.column(row.try_get(0))?, self.column(row.try_get(1))?, self.column(row.try_get_unchecked(2))?);
            range.push((seq, handlers, old));
        }
        let (Some(first), Some(last)) = (range.first().map(|e| e.0), range.last().map(|e| e.0)) else {
            // The end: the next call begins again. Events before the cursor were seen in this round.
            self.purge_cursor.store(0, Ordering::Relaxed);
            return Ok(());
        };
        let ended = range.len() < limit;
        if range.iter().any(|event| event.2) {
            let busy = self.busy(first, last).await?;
            let deletes = range
                .iter()
                .filter(|(seq, _, old)| *old && !busy.contains(seq))
                .map(|(seq, handlers, _)| Binds::default().with(*seq).with(handlers.as_str()))
                .collect();
            for outcomes in self.delete(DELETE_EVENT, deletes).await? {
                purged.events += outcomes.first().map_or(0, |outcome| outcome.changes);
                purged.records += outcomes.get(2).map_or(0, |outcome| outcome.changes);
            }
        }
        self.purge_cursor.store(if ended { 0 } else { last }, Ordering::Relaxed);
        purged.more |= !ended;
        Ok(())
    }

    async fn busy(&self, first: i64, last: i64) -> Result<HashSet<i64>> {
        let outcomes = self.read(BUSY, Binds::default().with(first).with(last)).await?;
        let rows = outcomes.first().map_or(&[][..], |outcome| &outcome.rows);
        rows.iter().map(|row| self.column(row.try_get(0))).collect()
    }

    /// Runs a delete for each set of binds, in transactions of [`ROWS_A_CALL`].
    async fn delete(&self, statement: &'static str, rows: Vec<Binds>) -> Result<Vec<Vec<Outcome>>> {
        let mut answers = Vec::with_capacity(rows.len());
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut calls = vec![Call { text: self.sql.fixed("BEGIN IMMEDIATE;"), binds: Binds::default() }];
            let text = self.sql.fixed(statement);
            calls.extend(
                rows.by_ref().take(ROWS_A_CALL).map(|binds| Call { text: std::sync::Arc::clone(&text), binds }),
            );
            calls.push(Call { text: self.sql.fixed("COMMIT;"), binds: Binds::default() });
            let mut done = self.writer.run(calls).await.map_err(|error| self.error("purge", error))?;
            done.pop();
            answers.extend(done.into_iter().skip(1));
        }
        Ok(answers)
    }
}
