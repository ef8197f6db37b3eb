//! Ending attempts: reschedule, bury, release, and completing inside a handler's transaction.
//!
//! Invariant: each write names the delivery by its whole key and compares session and `claims`; what misses changes
//! nothing. Ending an attempt without completing it raises `claims`, so that its token never fits again.
//!
//! The answer to a write that missed is looked up afterwards. That the delivery may move on between the write and the look
//! does no harm: whoever moved it had the lease, and `Gone` and `Lost` both mean that this one is over.
//!
//! Order: after a keyed head was let go, an earlier delivery of its key that came while it was held goes first.

use relaybus::store::{Completed, Settled, Settlement, Verdict};
use relaybus::{Error, ErrorInfo, Result, Timestamp};

use super::Inner;
use super::args::Binds;
use super::lease::{SqliteSession, gone_or_lost};
use super::plan::bind_completions;
use super::row::Broken;
use super::transaction::SqliteTransaction;
use super::writer::Call;

impl Inner {
    pub(super) async fn settle(
        &self,
        session: &mut SqliteSession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let last = settlements.len() - 1;
        let calls = settlements
            .iter()
            .enumerate()
            .map(|(index, settlement)| self.settle_call(settlement, now, index == 0, index == last))
            .collect();
        let answers = self.writer.run(calls).await.map_err(|error| self.error("settle deliveries", error))?;
        let mut settled = Vec::with_capacity(settlements.len());
        for (index, settlement) in settlements.iter().enumerate() {
            // The first statement after `BEGIN` is the one that tells.
            let outcome = answers.get(index).and_then(|outcomes| outcomes.get(usize::from(index == 0)));
            settled.push(if outcome.is_some_and(|outcome| outcome.changes > 0) {
                Settled::Applied
            } else {
                gone_or_lost(self.locate(&settlement.lease).await?)
            });
            self.forget(settlement.lease.token.epoch, std::slice::from_ref(&settlement.lease));
            self.forget(session.id, &settlement.rest);
        }
        self.watchers.wake();
        Ok(settled)
    }

    fn settle_call(&self, settlement: &Settlement, now: Timestamp, begin: bool, commit: bool) -> Call {
        let lease = &settlement.lease;
        let (bury, due_at, charge, error) = match &settlement.verdict {
            Verdict::Reschedule { due_at, error } => (false, Some(due_at.as_micros()), 1, Some(error.as_str())),
            Verdict::Bury { error, charge } => (true, None, i64::from(*charge), Some(error.as_str())),
            Verdict::Release => (false, None, 0, None),
        };
        let binds = Binds::default()
            .with(lease.handler.as_str())
            .with(lease.due_at.as_micros())
            .with(lease.position)
            .with(lease.token.epoch)
            .with(lease.token.claims)
            .with(due_at)
            .with(charge)
            .with(error)
            .with(lease.key.as_ref().map(|key| key.as_str()))
            .with(now.as_micros());
        Call { text: self.sql.settle(bury, lease.key.is_some(), begin, commit), binds }
    }

    /// Buries deliveries whose event cannot be read, without charging them: no handler ran.
    pub(super) async fn bury_broken(&self, session: i64, broken: &[Broken], now: Timestamp) -> Result<()> {
        let last = broken.len().saturating_sub(1);
        let calls = broken.iter().enumerate().map(|(index, delivery)| {
            let invalid = Error::InvalidEnvelope { reason: delivery.reason.to_owned() };
            let message = format!("the stored event cannot be read: {}", delivery.reason);
            let error = ErrorInfo { message, ..ErrorInfo::of(&invalid) };
            let binds = Binds::default()
                .with(delivery.handler.as_str())
                .with(delivery.due_at)
                .with(delivery.position)
                .with(session)
                .with(delivery.claims)
                .with(Option::<i64>::None)
                .with(0_i64)
                .with(error.to_json())
                .with(delivery.key.as_deref())
                .with(now.as_micros());
            Call { text: self.sql.settle(true, delivery.key.is_some(), index == 0, index == last), binds }
        });
        self.writer.run(calls.collect()).await.map_err(|error| self.error("bury deliveries", error))?;
        Ok(())
    }

    pub(super) async fn complete_in(
        &self,
        transaction: &mut SqliteTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        let lease = &completed.lease;
        let mut binds = Binds::default();
        bind_completions(self, &mut binds, std::slice::from_ref(completed), now);
        binds.push(lease.token.epoch);
        binds.push(now.as_micros());
        if transaction.complete(self.sql.complete_in(transaction.is_watched()), binds).await? {
            return Ok(Settled::Applied);
        }
        // The caller rolls back; until then nobody else can change the row, and a reader sees what was committed.
        Ok(gone_or_lost(self.locate(lease).await?))
    }
}
