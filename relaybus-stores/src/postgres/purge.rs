//! Purging: what is past its retention goes, in transactions of a bounded number of rows.
//!
//! An event goes when it has no delivery and its last completion is before the cut. A completion soon after its event is not
//! recorded; such an event counts from its own time plus a slack that is stored in the database. A writer leaves out less
//! than that, so nothing goes too early.
//!
//! Interleavings: the events are found and locked by one statement, and deleted by the next, which sees what was committed
//! before the locks and asks every condition again. An append that adds a handler holds the same lock: whoever comes second
//! sees the first. Two purges skip each other's rows.

use relaybus::store::{PurgeRequest, Purged};
use relaybus::{Error, Result, Timestamp};
use sqlx::{AssertSqlSafe, Row};

use super::Inner;
use super::args::{Binds, Time};
use super::background::to_its_end;
use super::error::store_error;

const PURGING: &str = "purge";

impl Inner {
    pub(super) async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        let mut purged = Purged::default();
        let limit = request.limit.max(1);
        if let Some(before) = request.dead_before {
            self.purge_dead(before, limit, &mut purged).await?;
        }
        if let Some(before) = request.completed_before {
            self.purge_events(before, limit, &mut purged).await?;
        }
        Ok(purged)
    }

    async fn purge_dead(&self, before: Timestamp, limit: usize, purged: &mut Purged) -> Result<()> {
        let mut left = limit;
        while left > 0 {
            let rows = left.min(self.builder.purge_batch);
            let binds = Binds::default().with(Time::from(before)).with(i64::try_from(rows).unwrap_or(i64::MAX));
            let deleted = self.ask(PURGING, &self.sql.purge_dead, binds).await?.len();
            purged.dead += deleted as u64;
            if deleted < rows {
                return Ok(());
            }
            left = left.saturating_sub(deleted);
        }
        purged.more = true;
        Ok(())
    }

    async fn purge_events(&self, before: Timestamp, limit: usize, purged: &mut Purged) -> Result<()> {
        let slack = self.slack_seconds().await?;
        let mut left = limit;
        while left > 0 {
            let rows = left.min(self.builder.purge_batch);
            let batch = Batch {
                pool: self.work().await?.clone(),
                candidates: self.sql.purge_candidates.clone(),
                delete: self.sql.purge_delete.clone(),
                prepared: self.prepared(),
                before: Time::from(before),
                slack,
                rows: i64::try_from(rows).unwrap_or(i64::MAX),
            };
            let ended = to_its_end(batch.run()).await;
            let ended = ended.ok_or_else(|| Error::store("the runtime ended during a purge", None))?;
            let (found, events, records) = ended.map_err(|error| store_error(PURGING, error))?;
            purged.events += events;
            purged.records += records;
            if found < rows {
                return Ok(());
            }
            left = left.saturating_sub(found);
        }
        purged.more = true;
        Ok(())
    }

    async fn slack_seconds(&self) -> Result<f64> {
        for row in self.ask(PURGING, &self.sql.settings, Binds::default()).await? {
            let name: String = row.try_get(0).map_err(|error| store_error(PURGING, error))?;
            if name == "slack_seconds" {
                let value: i64 = row.try_get(1).map_err(|error| store_error(PURGING, error))?;
                return Ok(f64::from(i32::try_from(value).unwrap_or(i32::MAX)));
            }
        }
        Err(Error::store("the store's settings are not there: call `setup`", None))
    }
}

/// One transaction of a purge.
struct Batch {
    pool: sqlx::PgPool,
    candidates: std::sync::Arc<str>,
    delete: std::sync::Arc<str>,
    prepared: bool,
    before: Time,
    slack: f64,
    rows: i64,
}

impl Batch {
    /// How many were found, and how many events and records went.
    async fn run(self) -> std::result::Result<(usize, u64, u64), sqlx::Error> {
        let mut tx = self.pool.begin_with(super::work::BEGIN).await?;
        let found = sqlx::query(AssertSqlSafe(self.candidates))
            .persistent(self.prepared)
            .bind(self.before)
            .bind(self.slack)
            .bind(self.rows)
            .fetch_all(&mut *tx)
            .await?;
        let ids = found
            .iter()
            .map(|row| row.try_get_unchecked::<Vec<u8>, _>(0))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        if ids.is_empty() {
            tx.rollback().await?;
            return Ok((0, 0, 0));
        }
        let row = sqlx::query(AssertSqlSafe(self.delete))
            .persistent(self.prepared)
            .bind(&ids)
            .bind(self.before)
            .bind(self.slack)
            .fetch_one(&mut *tx)
            .await?;
        let (events, records): (i64, i64) = (row.try_get_unchecked(0)?, row.try_get_unchecked(1)?);
        tx.commit().await?;
        Ok((ids.len(), u64::try_from(events).unwrap_or(0), u64::try_from(records).unwrap_or(0)))
    }
}
