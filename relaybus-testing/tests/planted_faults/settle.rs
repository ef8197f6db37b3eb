//! Faults of ends: settlements that do something else, and sessions that end badly.

use relaybus::store::{Completed, Lease, RunPart, Settled, Settlement, TurnRequest, Verdict};
use relaybus::{Error, EventStore, Result, Timestamp};

use super::fault::Fault;
use super::store::{Living, Mutant};

impl Mutant {
    pub(crate) async fn settle_spoiled(
        &self,
        number: usize,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        let mut sessions = self.sessions.lock().await;
        let session = sessions.living.get_mut(&number).ok_or(Error::SessionLost)?;
        let mut answers = Vec::new();
        for settlement in settlements {
            answers.push(self.settle_one(session, self.spoiled_settlement(settlement, now), now).await?);
        }
        for settlement in settlements {
            let id = settlement.lease.delivery_id();
            session.held.retain(|run| run.deliveries.iter().all(|claimed| claimed.lease.delivery_id() != id));
        }
        Ok(answers)
    }

    async fn settle_one(&self, session: &mut Living, settlement: Settlement, now: Timestamp) -> Result<Settled> {
        if self.is(Fault::DeletesTheBuried) && matches!(settlement.verdict, Verdict::Bury { .. }) {
            let completed = [Completed::new(settlement.lease, RunPart::Last)];
            let turn = self.inner.turn(&mut session.inner, &TurnRequest::new(now).completing(&completed)).await?;
            return Ok(turn.completed[0]);
        }
        if self.is(Fault::ChargesTheRest) {
            self.notes().overcharged.extend(settlement.rest.iter().map(Lease::delivery_id));
        }
        Ok(self.inner.settle(&mut session.inner, &[settlement], now).await?[0])
    }

    fn spoiled_settlement(&self, settlement: &Settlement, now: Timestamp) -> Settlement {
        let mut spoiled = settlement.clone();
        spoiled.lease = self.inward(&settlement.lease);
        spoiled.verdict = match (self.fault, spoiled.verdict) {
            (Fault::RetriesAtOnce, Verdict::Reschedule { error, .. }) => Verdict::Reschedule { due_at: now, error },
            (Fault::ForgetsFailures, Verdict::Reschedule { due_at, .. }) => {
                Verdict::Reschedule { due_at, error: "{}".to_owned() }
            }
            (Fault::ChargesReleases, Verdict::Release) => {
                Verdict::Reschedule { due_at: settlement.lease.due_at, error: "{}".to_owned() }
            }
            (Fault::AlwaysChargesBurials, Verdict::Bury { error, .. }) => Verdict::Bury { error, charge: true },
            (_, verdict) => verdict,
        };
        if self.is(Fault::ForgetsTheRest) {
            self.notes().forgotten.extend(spoiled.rest.iter().map(Lease::delivery_id));
        }
        spoiled
    }

    pub(crate) async fn close_spoiled(&self, number: usize, now: Timestamp) -> Result<()> {
        let mut sessions = self.sessions.lock().await;
        let Some(mut session) = sessions.living.remove(&number) else { return Ok(()) };
        match self.fault {
            Fault::HandsNothingBack => return Ok(()),
            Fault::ChargesAtClose => {
                for run in std::mem::take(&mut session.held) {
                    let verdict = Verdict::Reschedule { due_at: now, error: "{}".to_owned() };
                    let mut settlement = Settlement::new(run.deliveries[0].lease.clone(), verdict);
                    settlement.rest = run.deliveries[1..].iter().map(|claimed| claimed.lease.clone()).collect();
                    self.inner.settle(&mut session.inner, &[settlement], now).await?;
                }
            }
            _ => {}
        }
        self.inner.close_session(session.inner, now).await
    }
}
