//! A worker: a session and the turns it takes.

use std::sync::Arc;

use relaybus::store::{
    ClaimRequest, Claimed, Completed, HandlerSlots, Lease, Run, RunPart, SessionRequest, Settled, Settlement, Turn,
    TurnRequest, Verdict,
};
use relaybus::{EventStore, HandlerId, Result, Timestamp};

use super::{LEASE, LOOKS, handler, ids};

/// A session that takes turns as a dispatcher does: it renews with each, and sweeps.
pub struct Worker<S: EventStore> {
    store: Arc<S>,
    session: S::Session,
    slots: Vec<HandlerSlots>,
    finished: Vec<Lease>,
    taken_over: usize,
}

impl<S: EventStore> Worker<S> {
    /// Opens a session for these handlers.
    pub async fn open(store: &Arc<S>, handlers: &[&str], now: Timestamp) -> Self {
        let ids: Vec<HandlerId> = handlers.iter().map(|name| handler(name)).collect();
        let request = SessionRequest::new(format!("worker-{:032x}", fastrand::u128(..)), ids.clone(), LEASE, now);
        let session = store.open_session(&request).await.expect("open a session");
        let slots = ids.into_iter().map(|id| HandlerSlots::new(id, usize::MAX)).collect();
        Self { store: Arc::clone(store), session, slots, finished: Vec::new(), taken_over: 0 }
    }

    /// Its store.
    #[must_use]
    pub fn store(&self) -> &Arc<S> {
        &self.store
    }

    /// Claims at most this many runs of a handler in a turn; of the others without a bound of their own.
    #[must_use]
    pub fn slots(mut self, handler_name: &str, limit: usize) -> Self {
        for slot in &mut self.slots {
            if slot.handler == *handler_name {
                slot.limit = limit;
            }
        }
        self
    }

    /// Sessions of dead workers that the turns of this worker took over.
    #[must_use]
    pub fn taken_over(&self) -> usize {
        self.taken_over
    }

    /// Says with the next turn that this lease ended without a statement of this session.
    pub fn finish(&mut self, lease: &Lease) {
        self.finished.push(lease.clone());
    }

    /// Sends a turn as it is.
    pub async fn send(&mut self, request: &TurnRequest<'_>) -> Result<Turn> {
        self.store.turn(&mut self.session, request).await
    }

    /// The session, for calls that the worker has no method for.
    pub fn session(&mut self) -> &mut S::Session {
        &mut self.session
    }

    /// A turn that renews, sweeps, completes, and claims at most `limit` runs of at most `run_length` deliveries.
    pub async fn turn(
        &mut self,
        completed: &[Completed],
        limit: usize,
        run_length: usize,
        now: Timestamp,
    ) -> Result<Turn> {
        let mut request = TurnRequest::new(now).completing(completed);
        request.renew = Some(now.after(LEASE));
        request.sweep = true;
        request.finished = &self.finished;
        request.claim = Some(ClaimRequest::new(&self.slots, limit, run_length));
        let turn = self.store.turn(&mut self.session, &request).await?;
        self.finished.clear();
        self.taken_over += turn.taken_over;
        assert_eq!(turn.completed.len(), completed.len(), "one answer for each completion");
        check_claim(&turn, &self.slots, limit, run_length);
        Ok(turn)
    }

    /// Takes turns until something is claimed or [`LOOKS`] turns found nothing.
    pub async fn claim_runs(&mut self, limit: usize, run_length: usize, now: Timestamp) -> Vec<Run> {
        for _ in 0..LOOKS {
            let turn = self.turn(&[], limit, run_length, now).await.expect("a turn");
            if !turn.runs.is_empty() {
                return turn.runs;
            }
        }
        Vec::new()
    }

    /// Takes turns with runs of one until something is claimed or [`LOOKS`] turns found nothing.
    pub async fn claim(&mut self, limit: usize, now: Timestamp) -> Vec<Claimed> {
        self.claim_runs(limit, 1, now).await.into_iter().flat_map(|run| run.deliveries).collect()
    }

    /// Takes turns until at least `wanted` deliveries were claimed or [`LOOKS`] turns in a row found nothing.
    pub async fn claim_all(&mut self, wanted: usize, now: Timestamp) -> Vec<Claimed> {
        let mut claimed = Vec::new();
        while claimed.len() < wanted {
            let more = self.claim(wanted - claimed.len(), now).await;
            if more.is_empty() {
                break;
            }
            claimed.extend(more);
        }
        assert_eq!(claimed.len(), wanted, "claimed {:?}", ids(&claimed));
        claimed
    }

    /// Claims one delivery and expects it to be of this event.
    pub async fn claim_event(&mut self, event_id: &str, now: Timestamp) -> Claimed {
        let mut claimed = self.claim(1, now).await;
        assert_eq!(ids(&claimed), [event_id], "the next delivery");
        claimed.remove(0)
    }

    /// Claims one run of at most `run_length` and expects it to be of these events.
    pub async fn claim_run(&mut self, run_length: usize, event_ids: &[&str], now: Timestamp) -> Vec<Claimed> {
        let mut runs = self.claim_runs(1, run_length, now).await;
        assert_eq!(runs.len(), 1, "one run");
        let run = runs.remove(0).deliveries.into_vec();
        assert_eq!(ids(&run), event_ids, "the run");
        run
    }

    /// Expects that [`LOOKS`] turns find nothing.
    pub async fn expect_nothing(&mut self, now: Timestamp) {
        let found = self.claim_runs(100, 1, now).await;
        let found: Vec<Claimed> = found.into_iter().flat_map(|run| run.deliveries).collect();
        assert!(found.is_empty(), "nothing may be handed out, got {:?}", ids(&found));
    }

    /// Completes a delivery that ends its run.
    pub async fn complete(&mut self, claimed: &Claimed, now: Timestamp) -> Settled {
        self.complete_part(&claimed.lease, RunPart::Last, now).await
    }

    /// Completes a delivery of a run.
    pub async fn complete_part(&mut self, lease: &Lease, part: RunPart, now: Timestamp) -> Settled {
        self.complete_many(&[Completed::new(lease.clone(), part)], now).await[0]
    }

    /// Completes deliveries in one turn that claims nothing.
    pub async fn complete_many(&mut self, completed: &[Completed], now: Timestamp) -> Vec<Settled> {
        let mut request = TurnRequest::new(now).completing(completed);
        request.renew = Some(now.after(LEASE));
        request.finished = &self.finished;
        let turn = self.store.turn(&mut self.session, &request).await.expect("a turn");
        self.finished.clear();
        assert!(turn.runs.is_empty(), "a turn without a claim hands out nothing");
        assert_eq!(turn.completed.len(), completed.len(), "one answer for each completion");
        turn.completed
    }

    /// Settles one delivery.
    pub async fn settle(&mut self, lease: &Lease, verdict: Verdict, now: Timestamp) -> Settled {
        self.settle_many(&[Settlement::new(lease.clone(), verdict)], now).await[0]
    }

    /// Settles deliveries in one call.
    pub async fn settle_many(&mut self, settlements: &[Settlement], now: Timestamp) -> Vec<Settled> {
        let answers = self.store.settle(&mut self.session, settlements, now).await.expect("settle");
        assert_eq!(answers.len(), settlements.len(), "one answer for each settlement");
        answers
    }

    /// Claims and completes one by one until [`LOOKS`] turns in a row find nothing; what was completed, in order.
    pub async fn drain(&mut self, now: Timestamp) -> Vec<Claimed> {
        let mut done: Vec<Claimed> = Vec::new();
        let mut finished: Vec<Completed> = Vec::new();
        let mut idle = 0;
        while idle < LOOKS {
            let turn = self.turn(&finished, 50, 1, now).await.expect("a turn");
            for (answer, completion) in turn.completed.iter().zip(&finished) {
                assert_eq!(*answer, Settled::Applied, "completing {}", completion.lease.delivery_id());
            }
            idle = if turn.runs.is_empty() { idle + 1 } else { 0 };
            let claimed: Vec<Claimed> = turn.runs.into_iter().flat_map(|run| run.deliveries).collect();
            finished = claimed.iter().map(|claimed| Completed::new(claimed.lease.clone(), RunPart::Last)).collect();
            done.extend(claimed);
        }
        done
    }

    /// Ends the process of this worker: the session is never heard of again.
    pub fn crash(self) {}

    /// Ends the session in order.
    pub async fn close(self, now: Timestamp) {
        self.store.close_session(self.session, now).await.expect("close a session");
    }
}

/// What every claim keeps: its bounds, and runs that are one handler's and one key's.
fn check_claim(turn: &Turn, slots: &[HandlerSlots], limit: usize, run_length: usize) {
    assert!(turn.runs.len() <= limit, "{} runs for a limit of {limit}", turn.runs.len());
    for run in &turn.runs {
        let first = run.deliveries.first().expect("a run is never empty");
        assert!(run.deliveries.len() <= run_length, "a run of {} for {run_length}", run.deliveries.len());
        assert!(first.lease.key.is_some() || run.deliveries.len() == 1, "an unkeyed run has one delivery");
        for claimed in &run.deliveries {
            let lease = &claimed.lease;
            assert_eq!((&lease.handler, &lease.key), (&first.lease.handler, &first.lease.key), "one run, one key");
            assert_eq!((&claimed.event.id, &claimed.event.key), (&lease.event_id, &lease.key), "lease and event");
        }
    }
    for run in &turn.runs {
        let name = &run.deliveries[0].lease.handler;
        let slot = slots.iter().find(|slot| slot.handler == *name);
        let slot = slot.unwrap_or_else(|| panic!("a claim for {slots:?} handed out a delivery of `{name}`"));
        let runs = turn.runs.iter().filter(|run| run.deliveries[0].lease.handler == *name).count();
        assert!(runs <= slot.limit, "{runs} runs of `{name}` for {} slots", slot.limit);
    }
}
