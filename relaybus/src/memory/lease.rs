//! Leases: sessions, the fence in front of every settling write, and taking over what a dead worker held.
//!
//! **Who is authoritative.** The session row. While it exists, its deliveries are its own, also after its expiry has
//! passed; a turn of the session or a renewal is as good then as before. Whoever removes the row, in the same critical
//! section in which it gives the deliveries back, ends the session. The worker itself stops starting handlers before
//! its expiry, by its own monotonic clock.
//!
//! **Token.** `<lane>:<session>:<claims>`. Session numbers are never used twice, and `claims` of a delivery rises with
//! every claim that ended without completing it, so no token is ever given out twice.
//!
//! **Charging.** A session that ended without a word costs an attempt for what it may have started: each unkeyed delivery
//! it held, and the first of each run. The followers of a run go back uncharged, but their tokens end too.

use super::state::{Place, SessionRow, State, Status};
use crate::clock::Timestamp;
use crate::store::{Lease, LeaseState, LeaseToken, SessionRequest, Settled};

impl State {
    pub(super) fn open_session(&mut self, request: &SessionRequest) -> i64 {
        self.last_session += 1;
        let row = SessionRow { expires_at: request.now.after(request.lease), held: Default::default() };
        self.sessions.insert(self.last_session, row);
        self.last_session
    }

    /// Moves the expiry of a session forward; a late renewal never moves it back.
    pub(super) fn renew(&mut self, session: i64, expires_at: Timestamp) {
        if let Some(row) = self.sessions.get_mut(&session) {
            row.expires_at = row.expires_at.max(expires_at);
        }
    }

    /// Finds the delivery that `lease` names if it is still held under its token.
    pub(super) fn fence(&self, lease: &Lease) -> Result<Place, Settled> {
        let queue = *self.names.get(&lease.handler).ok_or(Settled::Gone)?;
        let place = Place { queue, position: lease.position };
        let (row, delivery) = self.delivery(place).ok_or(Settled::Gone)?;
        if row.event.id != lease.event_id {
            return Err(Settled::Gone);
        }
        match delivery.status {
            Status::Completed { .. } => Err(Settled::Gone),
            Status::Pending | Status::Dead { .. } => Err(Settled::Lost),
            Status::Processing { session } => {
                let token = LeaseToken { lane: row.lane, epoch: session, claims: delivery.claims };
                if token == lease.token { Ok(place) } else { Err(Settled::Lost) }
            }
        }
    }

    /// As [`State::fence`], for a write of `session`, which may only settle its own.
    pub(super) fn fence_for(&self, session: i64, lease: &Lease) -> Result<Place, Settled> {
        let place = self.fence(lease)?;
        if lease.token.epoch == session { Ok(place) } else { Err(Settled::Lost) }
    }

    pub(super) fn inspect(&self, lease: &Lease) -> LeaseState {
        match self.fence(lease) {
            Ok(_) | Err(Settled::Applied) => LeaseState::Held,
            Err(Settled::Gone) => LeaseState::Gone,
            Err(Settled::Lost) => LeaseState::Lost,
        }
    }

    /// Takes over every other session that expired. Returns how many.
    ///
    /// No skew margin: every session of this store is judged by `now`s of one process.
    pub(super) fn take_over_expired(&mut self, own: i64, now: Timestamp) -> usize {
        let expired = |(&id, row): (&i64, &SessionRow)| (id != own && row.expires_at <= now).then_some(id);
        let victims: Vec<i64> = self.sessions.iter().filter_map(expired).collect();
        for &victim in &victims {
            let held = self.held_by(victim);
            let started: Vec<bool> = held.iter().map(|&place| self.may_have_started(place)).collect();
            for (place, started) in held.into_iter().zip(started) {
                self.give_back(place, u32::from(started));
            }
            self.sessions.remove(&victim);
        }
        victims.len()
    }

    /// Ends a session without charging anything. Returns how many deliveries it handed back.
    pub(super) fn close_session(&mut self, session: i64) -> usize {
        let held = self.held_by(session);
        for &place in &held {
            self.give_back(place, 0);
        }
        self.sessions.remove(&session);
        held.len()
    }

    fn held_by(&self, session: i64) -> Vec<Place> {
        let held = self.sessions.get(&session).map(|row| &row.held);
        let mut places: Vec<Place> = held.into_iter().flatten().copied().collect();
        // The order decides nothing, but a simulation repeats only what has one.
        places.sort_unstable();
        places
    }

    fn may_have_started(&self, place: Place) -> bool {
        let Some((row, _)) = self.delivery(place) else { return false };
        let Some(key) = &row.event.key else { return true };
        let chain = self.queues[place.queue].keys.get(key);
        chain.is_some_and(|chain| chain.run.first() == Some(&place.position))
    }

    /// Ends a claim that did not complete: the delivery is pending again, due as before.
    pub(super) fn give_back(&mut self, place: Place, charge: u32) {
        self.set_status(place, Some(Status::Pending), |delivery| {
            delivery.claims += 1;
            delivery.attempts = delivery.attempts.saturating_add(charge);
        });
    }
}
