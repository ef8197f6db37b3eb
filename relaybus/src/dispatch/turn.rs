//! One turn: what is sent together, and what its answer changes.

use std::time::Duration;

use super::pump::Pump;
use crate::error::{Error, Result};
use crate::observe::{ClaimFinished, Interest, Stage};
use crate::store::{ClaimRequest, Completed, EventStore, RunPart, Turn, TurnRequest};

/// What a turn was sent for, and when.
struct Sent {
    at: Duration,
    claim: bool,
    sweep: bool,
    renewing: bool,
    /// Completions that it carried.
    count: usize,
}

impl Pump {
    fn free(&self) -> usize {
        self.engine.options.dispatcher.concurrency.saturating_sub(self.ledger.active() + self.held.len())
    }

    /// Slots that are free once the completions that wait are written: the same statement may claim for them, because whatever
    /// it answers about a completion, the run ends.
    pub(super) fn free_with_turn(&mut self) -> usize {
        self.ledger.nothing_ends();
        let batch = self.completions_a_turn();
        for pending in self.completions.iter().take(batch) {
            if let (Some(run), RunPart::Last) = (pending.waits, pending.completed.part) {
                self.ledger.ends(run);
            }
        }
        self.free() + self.ledger.ending()
    }

    fn completions_a_turn(&self) -> usize {
        let options = &self.engine.options.dispatcher;
        if options.completion_window.is_zero() { 1 } else { options.completion_batch }
    }

    /// One turn with everything that is due.
    pub(super) async fn turn(&mut self, claim: bool) {
        let Some(mut session) = self.session.take() else { return };
        let options = self.engine.options.dispatcher.clone();
        let sent = self.engine.clock.monotonic();
        let now = self.engine.now();
        let count = self.completions.len().min(self.completions_a_turn());
        let completed: Vec<Completed> =
            self.completions[..count].iter().map(|pending| pending.completed.clone()).collect();
        // Whatever the load, once a poll interval: dead sessions do not wait for a quiet moment.
        let sweep = sent >= self.sweep_at;
        // A claim also renews what would be due before the next poll: an idle bus has one call a poll interval.
        let ahead = options.poll_interval.min(options.lease / 6);
        let renewing = sent >= self.renew_at || (claim && sent + ahead > self.renew_at);
        let limit = if claim { self.free_with_turn().min(options.batch()) } else { 0 };
        let mut claimable = std::mem::take(&mut self.claimable);
        self.ledger.claimable(limit, &mut claimable);
        let finished = std::mem::take(&mut self.finished);
        let engine = self.engine.clone();
        let mut request = TurnRequest::new(now);
        request.completed = &completed;
        request.finished = &finished;
        request.renew = renewing.then(|| now.after(options.lease));
        request.sweep = sweep;
        request.claim =
            (claim && !claimable.is_empty()).then(|| ClaimRequest::new(&claimable, limit, options.run_length));
        let asked = request.claim.map_or(0, |claim| claim.limit);
        let idle = completed.is_empty() && finished.is_empty() && self.doubted.is_empty();
        if request.claim.is_none() && idle && !renewing && !sweep {
            // Every handler is at its own limit: there is nothing to ask for.
            self.schedule.claimed(sent, false);
            self.claimable = claimable;
            self.session = Some(session);
            return;
        }
        let answer = self.answered(engine.store.turn(&mut session, &request)).await;
        self.report_claim(claim, asked, sent, &answer);
        self.claimable = claimable;
        match answer {
            Ok(turn) => {
                self.session = Some(session);
                self.turned(&Sent { at: sent, claim, sweep, renewing, count }, turn);
            }
            Err(Error::SessionLost) => self.session_lost(),
            Err(error) => {
                self.session = Some(session);
                self.finished = finished;
                for pending in &mut self.completions[..count] {
                    pending.repeated = true;
                }
                let stage = match count {
                    _ if claim => Stage::Claim,
                    0 => Stage::Renew,
                    _ => Stage::Complete,
                };
                self.store_failed(stage, error);
            }
        }
    }

    fn turned(&mut self, sent: &Sent, turn: Turn) {
        if sent.sweep {
            // One session a sweep: where several died together, the next is not left for another poll.
            let poll_interval = self.engine.options.dispatcher.poll_interval;
            self.sweep_at = if turn.taken_over > 0 { sent.at } else { sent.at + poll_interval };
            self.report_stuck(sent.at);
        }
        self.store_answered();
        self.doubts_resolved();
        if sent.renewing {
            self.renewed(sent.at);
        }
        self.completed(sent.count, &turn.completed);
        if sent.claim {
            // Behind the completions: the claim was for their slots too.
            self.schedule.claimed(sent.at, turn.more);
            self.schedule.answered(sent.at, self.engine.clock.monotonic());
        }
        if turn.taken_over > 0 {
            self.schedule.wake();
        }
        self.claimed(turn, sent.claim);
    }

    fn report_claim(&self, claim: bool, requested: usize, sent: Duration, answer: &Result<Turn>) {
        if !claim || !self.engine.observers.want(Interest::CLAIM) {
            return;
        }
        let claimed = answer.as_ref().map_or(0, |turn| turn.runs.iter().map(|run| run.deliveries.len()).sum());
        let report = ClaimFinished {
            requested,
            claimed,
            lanes: answer.as_ref().map_or(0, |turn| turn.lanes),
            duration: self.engine.clock.monotonic().saturating_sub(sent),
            error: answer.as_ref().err(),
        };
        self.engine.observers.call(Interest::CLAIM, |observer| observer.claim_finished(&report));
    }

    fn claimed(&mut self, turn: Turn, claim: bool) {
        for run in turn.runs {
            self.start(run);
        }
        if claim {
            self.ledger.claim_ended(turn.more);
        }
    }
}
