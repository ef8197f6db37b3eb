//! Settling: how a claim ends, behind the fence of its token.
//!
//! Whatever happens to a delivery of a run, the ones behind it leave the session with it, unless it completed and the
//! run goes on: nothing of a key is held beside an earlier one that is pending.

use super::state::{Place, State, Status};
use crate::clock::Timestamp;
use crate::store::{Completed, RunPart, Settled, Settlement, Verdict};

impl State {
    /// Completes a delivery that a session of its own sends.
    pub(super) fn complete_for(&mut self, session: i64, completed: &Completed, now: Timestamp) -> Settled {
        match self.fence_for(session, &completed.lease) {
            Ok(place) => self.complete(place, completed, now),
            Err(settled) => settled,
        }
    }

    /// Completes a delivery whose lease stands.
    pub(super) fn complete(&mut self, place: Place, completed: &Completed, now: Timestamp) -> Settled {
        match completed.part {
            RunPart::Last => self.drop_behind(place),
            RunPart::Continues => {}
        }
        let status = self.completion_history.then_some(Status::Completed { at: now });
        self.set_status(place, status, |_| {});
        if let Some(row) = self.events.get_mut(&place.position) {
            row.completed_at = row.completed_at.max(Some(now));
        }
        Settled::Applied
    }

    pub(super) fn settle(&mut self, session: i64, settlement: &Settlement, now: Timestamp) -> Settled {
        let settled = match self.fence_for(session, &settlement.lease) {
            Ok(place) => {
                self.drop_behind(place);
                self.end_claim(place, &settlement.verdict, now);
                Settled::Applied
            }
            Err(settled) => settled,
        };
        // What stood behind it is back already, unless this is a repeat or the lease itself was lost.
        for lease in &settlement.rest {
            if let Ok(place) = self.fence_for(session, lease) {
                self.drop_behind(place);
                self.give_back(place, 0);
            }
        }
        settled
    }

    fn end_claim(&mut self, place: Place, verdict: &Verdict, now: Timestamp) {
        match verdict {
            Verdict::Release => self.give_back(place, 0),
            Verdict::Reschedule { due_at, error } => self.set_status(place, Some(Status::Pending), |delivery| {
                delivery.claims += 1;
                delivery.attempts = delivery.attempts.saturating_add(1);
                delivery.due_at = *due_at;
                delivery.last_error = Some(error.clone());
            }),
            Verdict::Bury { error, charge } => self.set_status(place, Some(Status::Dead { at: now }), |delivery| {
                delivery.claims += 1;
                delivery.attempts = delivery.attempts.saturating_add(u32::from(*charge));
                delivery.last_error = Some(error.clone());
            }),
        }
    }

    /// Gives back, uncharged, what is held behind a delivery in its run.
    fn drop_behind(&mut self, place: Place) {
        let key = self.events.get(&place.position).and_then(|row| row.event.key.as_ref());
        let Some(behind) = key.map(|key| self.queues[place.queue].behind(key, place.position)) else { return };
        for position in behind {
            self.give_back(Place { position, ..place }, 0);
        }
    }
}
