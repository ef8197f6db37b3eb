//! Faults of turns: claims, completions and takeovers that go wrong.

use std::sync::Arc;

use relaybus::store::{
    ClaimRequest, Claimed, Completed, DeliveryQuery, HandlerSlots, Lease, Run, RunPart, Settled, Settlement, Turn,
    TurnRequest, Verdict,
};
use relaybus::{Error, EventStore, Result, Timestamp};

use super::fault::Fault;
use super::store::{Living, Mutant, Sessions};

impl Mutant {
    pub(crate) async fn turn_spoiled(&self, number: usize, request: &TurnRequest<'_>) -> Result<Turn> {
        let mut sessions = self.sessions.lock().await;
        let mut request = request.clone();
        let taken_over = self.take_over_spoiled(&mut sessions, number, &mut request).await?;
        let others: Vec<Run> = sessions
            .living
            .iter()
            .filter(|(other, _)| **other != number)
            .flat_map(|(_, session)| session.held.clone())
            .collect();
        if self.is(Fault::RevivesLostSessions) && !self.lives(&mut sessions, number).await {
            let lost = sessions.living.get_mut(&number).ok_or(Error::SessionLost)?;
            lost.inner = self.inner.open_session(&lost.request).await?;
        }
        let session = sessions.living.get_mut(&number).ok_or(Error::SessionLost)?;
        let completed: Vec<Completed> = self.completions(request.completed);
        let slots = self.slots(&request).await?;
        let limit = self.limit(&request, session);
        let claim = request.claim.map(|claim| {
            let run_length = if self.is(Fault::HasNoRuns) { claim.run_length.min(1) } else { claim.run_length };
            ClaimRequest::new(&slots, limit, run_length)
        });
        let completed_before = request.completed;
        request.completed = &completed;
        request.claim = claim;
        let mut turn = self.inner.turn(&mut session.inner, &request).await?;
        turn.taken_over += taken_over;
        self.spoil_answers(&mut turn, completed_before);
        let ended = |lease: &Lease| completed_before.iter().any(|done| done.lease.delivery_id() == lease.delivery_id());
        session.held.retain(|run| !run.deliveries.iter().any(|claimed| ended(&claimed.lease)));
        self.spoil_runs(&mut turn, session, &others, &request).await?;
        Ok(turn)
    }

    /// Whether the store knows this session still.
    async fn lives(&self, sessions: &mut Sessions, number: usize) -> bool {
        match sessions.living.get_mut(&number) {
            Some(session) => self.inner.turn(&mut session.inner, &TurnRequest::new(Timestamp::EPOCH)).await.is_ok(),
            None => false,
        }
    }

    async fn take_over_spoiled(
        &self,
        sessions: &mut Sessions,
        number: usize,
        request: &mut TurnRequest<'_>,
    ) -> Result<usize> {
        let now = request.now;
        let own = sessions.living.get_mut(&number).ok_or(Error::SessionLost)?;
        if self.is(Fault::RefusesExpiredSessions) && own.expires_at < now {
            return Err(Error::SessionLost);
        }
        if let Some(renew) = request.renew {
            own.expires_at = if self.is(Fault::ShortensLeases) { renew } else { own.expires_at.max(renew) };
        }
        let is_victim = |session: &Living| match self.fault {
            Fault::TakesOverUncharged | Fault::ShortensLeases => session.expires_at < now,
            Fault::TakesOverTheLiving => true,
            _ => false,
        };
        if self.is(Fault::IgnoresRenewals) {
            request.renew = None;
        }
        if self.is(Fault::NeverTakesOver) {
            request.sweep = false;
        }
        if !request.sweep {
            return Ok(0);
        }
        let victims: Vec<usize> = sessions
            .living
            .iter()
            .filter(|(other, session)| **other != number && is_victim(session))
            .map(|(other, _)| *other)
            .collect();
        for victim in &victims {
            if let Some(victim) = sessions.living.remove(victim) {
                self.inner.close_session(victim.inner, now).await?;
            }
        }
        Ok(victims.len())
    }

    fn completions(&self, completed: &[Completed]) -> Vec<Completed> {
        let spoil = |done: &Completed| {
            let part = if self.is(Fault::EndsRunsEarly) { RunPart::Last } else { done.part };
            Completed::new(self.inward(&done.lease), part)
        };
        if self.is(Fault::ForgetsCompletions) { Vec::new() } else { completed.iter().map(spoil).collect() }
    }

    async fn slots(&self, request: &TurnRequest<'_>) -> Result<Vec<HandlerSlots>> {
        let Some(claim) = &request.claim else { return Ok(Vec::new()) };
        let mut slots = claim.handlers.to_vec();
        match self.fault {
            Fault::IgnoresSlots => slots.iter_mut().for_each(|slot| slot.limit = usize::MAX),
            Fault::ClaimsForEveryHandler => {
                for of in self.inner.backlog().await? {
                    if !slots.iter().any(|slot| slot.handler == of.handler) {
                        slots.push(HandlerSlots::new(of.handler, usize::MAX));
                    }
                }
            }
            _ => {}
        }
        Ok(slots)
    }

    fn limit(&self, request: &TurnRequest<'_>, session: &Living) -> usize {
        let limit = request.claim.map_or(0, |claim| claim.limit);
        match self.fault {
            Fault::IgnoresTheLimit => limit * 2,
            Fault::CountsRunningDeliveries => limit.saturating_sub(session.held.len()),
            _ => limit,
        }
    }

    fn spoil_answers(&self, turn: &mut Turn, completed: &[Completed]) {
        match self.fault {
            Fault::SaysApplied => turn.completed.fill(Settled::Applied),
            Fault::ForgetsCompletions => turn.completed = vec![Settled::Applied; completed.len()],
            Fault::SwapsAnswers => turn.completed.reverse(),
            Fault::NeverSaysMore => turn.more = false,
            _ => {}
        }
    }

    async fn spoil_runs(
        &self,
        turn: &mut Turn,
        session: &mut Living,
        others: &[Run],
        request: &TurnRequest<'_>,
    ) -> Result<()> {
        let limit = request.claim.map_or(0, |claim| claim.limit);
        match self.fault {
            Fault::ClaimsEarly if turn.runs.is_empty() => {
                let mut early = TurnRequest::new(request.now.after(std::time::Duration::from_secs(1)));
                early.claim = request.claim;
                turn.runs = self.inner.turn(&mut session.inner, &early).await?.runs;
            }
            Fault::HandsOutTwice if turn.runs.is_empty() => {
                turn.runs = session.held.iter().take(limit).cloned().collect();
            }
            Fault::HandsOutWhatOthersHold if turn.runs.is_empty() => {
                turn.runs = others.iter().take(limit).cloned().collect();
            }
            Fault::LosesClaims => {
                let mut notes = self.notes();
                turn.runs.retain(|_| {
                    notes.claimed += 1;
                    !notes.claimed.is_multiple_of(10)
                });
            }
            Fault::ForgetsTheRest => {
                let notes = self.notes();
                turn.runs.retain(|run| !notes.forgotten.contains(&run.deliveries[0].lease.delivery_id()));
            }
            Fault::SpendsItsLimitOnBlockedKeys => self.keep_the_first(turn, session, limit, request.now).await?,
            _ => {}
        }
        for run in &mut turn.runs {
            for claimed in &mut run.deliveries {
                self.outward(claimed);
            }
            if self.is(Fault::ReversesRuns) {
                run.deliveries.reverse();
            }
        }
        session.held.extend(turn.runs.iter().cloned());
        Ok(())
    }

    /// Hands out only what is among the first deliveries of the table, whether they can be handed out or not.
    async fn keep_the_first(&self, turn: &mut Turn, session: &mut Living, limit: usize, now: Timestamp) -> Result<()> {
        let first = self.inner.list_deliveries(&DeliveryQuery::all().limit(limit), now).await?.deliveries;
        let (kept, released): (Vec<Run>, Vec<Run>) = turn
            .runs
            .drain(..)
            .partition(|run| first.iter().any(|record| record.id == run.deliveries[0].lease.delivery_id()));
        turn.runs = kept;
        let releases: Vec<Settlement> =
            released.iter().map(|run| Settlement::new(run.deliveries[0].lease.clone(), Verdict::Release)).collect();
        self.inner.settle(&mut session.inner, &releases, now).await?;
        Ok(())
    }

    /// A claimed delivery on its way out.
    fn outward(&self, claimed: &mut Claimed) {
        match self.fault {
            Fault::ForgetsAttempts => claimed.attempts = 0,
            Fault::CountsClaimsAsAttempts => {
                claimed.attempts = u32::try_from(claimed.lease.token.claims).unwrap_or(u32::MAX);
            }
            Fault::ChargesTheRest => {
                claimed.attempts += u32::from(self.notes().overcharged.contains(&claimed.lease.delivery_id()));
            }
            Fault::WrongLanes => claimed.lease.token.lane = claimed.lease.token.lane.wrapping_add(1),
            Fault::HasNoOrder => {
                let key = self.notes().keys.get(claimed.event.id.as_str()).cloned();
                Arc::make_mut(&mut claimed.event).key.clone_from(&key);
                claimed.lease.key = key;
            }
            _ => {}
        }
        self.notes().leases.insert(claimed.lease.delivery_id(), claimed.lease.clone());
    }

    /// A lease on its way in.
    pub(crate) fn inward(&self, lease: &Lease) -> Lease {
        let mut lease = lease.clone();
        match self.fault {
            Fault::HasNoOrder => {
                if let Some(key) = lease.key.take() {
                    lease.key = Some(relaybus::OrderingKey::stored(format!("{key} {}", lease.event_id)));
                }
            }
            Fault::IgnoresTokens => {
                if let Some(last) = self.notes().leases.get(&lease.delivery_id()) {
                    lease.token = last.token;
                }
            }
            _ => {}
        }
        lease
    }
}
