//! The turn: one statement deletes what completed, claims what is due and records it.
//!
//! # How a claim looks
//!
//! Unkeyed deliveries are read in due order behind a cursor of their handler, those in hand left out, so every row that is
//! read can be picked. Keyed ones are read the same way only to learn their keys; of each key the first delivery decides, and
//! a run goes on from it. A key that ended in this very turn goes on behind its last sequence without being found again.
//!
//! How far it looks, and what it passes by, is told in `cursors`.
//!
//! # Interleavings
//!
//! - *The answer is lost*: the rows are deleted or not, and the claim is recorded or not. The caller sends its completions
//!   again; what was claimed unseen is not in hand, so a later turn claims it again, and its record is overwritten.
//! - *A late statement*: its number is lower than the session row's, so it records nothing and hands out nothing.
//! - *The session was taken over*: its row is gone; nothing is recorded, nothing handed out.
//! - *A completion misses its row because the table was rewritten*: it is found again by its index before anything of its
//!   key is handed out.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use relaybus::store::{ClaimRequest, Completed, Run, RunPart, Settled, Turn, TurnRequest};
use relaybus::{Error, ErrorInfo, Result, Timestamp};

use super::Inner;
use super::args::{Binds, Time};
use super::cursors::{advance, plan};
use super::error::store_error;
use super::row::Picked;
use super::send::{Answer, Ended};
use super::session::PostgresSession;

/// Deliveries in hand beyond which nothing is claimed: what fits into the session's row.
const MOST_HELD: usize = 900;

pub(super) const TURN: &str = "take a turn";
/// The error of a delivery whose event is not there.
const GONE: &str = "the event of this delivery was deleted from the table of events: delete its deliveries too";

impl Inner {
    pub(super) async fn turn(&self, session: &mut PostgresSession, request: &TurnRequest<'_>) -> Result<Turn> {
        session.has_turned = true;
        if request.sweep || request.renew.is_some() || session.unsure {
            self.look_around(session, request).await?;
        }
        session.finish(request.finished);
        let ended = self.ended(session, request);
        let room = MOST_HELD.saturating_sub(session.held.len());
        let claim =
            request.claim.map(|claim| ClaimRequest::new(claim.handlers, claim.limit.min(room), claim.run_length));
        let claim = claim.filter(|claim| claim.limit > 0);
        let mut asks = claim.map_or_else(Vec::new, |claim| plan(session, &claim, request));
        let answer = match claim {
            Some(claim) if !asks.is_empty() => self.send_claim(session, request, &ended, &claim, &mut asks).await?,
            _ => self.send_settled(session, request, &ended).await?,
        };
        let limit = claim.map_or(0, |claim| claim.limit);
        let more = advance(session, request, limit, &answer, &asks);
        let mut turn = self.conclude(session, request, ended, answer).await?;
        turn.more = more;
        Ok(turn)
    }

    /// The part of a turn about other sessions: takes over dead ones, shares the lanes.
    async fn look_around(&self, session: &mut PostgresSession, request: &TurnRequest<'_>) -> Result<()> {
        let expired = self.share_lanes(session, request.now).await.inspect_err(|_| session.unsure = true)?;
        if expired > 0 && self.builder.margin < Duration::MAX {
            let taken = self.take_over_expired(session, request.now).await?;
            session.taken_over += taken;
            if taken > 0 {
                self.share_lanes(session, request.now).await.inspect_err(|_| session.unsure = true)?;
            }
        }
        Ok(())
    }

    fn ended(&self, session: &PostgresSession, request: &TurnRequest<'_>) -> Ended {
        let mut ended = Ended::default();
        let late_before = self.late_before(request.now);
        let mut order: Vec<usize> = (0..request.completed.len()).collect();
        order.sort_by_key(|&place| request.completed[place].lease.position);
        for place in order {
            let completed = &request.completed[place];
            let Some(held) = session.holds(&completed.lease) else {
                ended.unheld.push(place);
                continue;
            };
            ended.tids.push(held.tid);
            ended.ids.push(completed.lease.position);
            ended.claims.push(i32::try_from(held.claims).unwrap_or(-1));
            if held.stored_at < late_before {
                ended.late.push(completed.lease.position);
            }
        }
        if session.runs.is_empty() {
            return ended;
        }
        let done: HashSet<i64> = ended.ids.iter().copied().collect();
        let mut keys: HashMap<(i16, i64), i64> = HashMap::new();
        for completed in request.completed {
            let Some(held) = session.holds(&completed.lease) else { continue };
            let Some(key) = held.key else { continue };
            let rest = session.rest_of(held, completed.lease.position).filter(|id| !done.contains(id));
            let dropped = ended.dropped.len();
            ended.dropped.extend(rest);
            if completed.part == RunPart::Last || ended.dropped.len() == dropped {
                keys.insert((held.handler, key), held.sequence);
            } else {
                ended.dropped.truncate(dropped);
            }
        }
        ended.keys = keys.into_iter().map(|((handler, key), after)| (handler, key, after)).collect();
        ended
    }

    /// Takes in the answer: forgets what ended, and builds what is handed out.
    async fn conclude(
        &self,
        session: &mut PostgresSession,
        request: &TurnRequest<'_>,
        ended: Ended,
        answer: Answer,
    ) -> Result<Turn> {
        let Answer { summary, mut picked, exhausted, .. } = answer;
        // A call that is dropped from here on has claimed what nobody knows.
        session.dirty = true;
        let mut unseen = summary.picks != picked.len();
        if unseen {
            self.bury_gone(session, request.now).await?;
        }
        let done: HashSet<i64> = summary.done.iter().copied().collect();
        let mut answers = vec![Settled::Applied; request.completed.len()];
        for (place, completed) in request.completed.iter().enumerate() {
            let lease = &completed.lease;
            let held = session.holds(lease).copied();
            if !done.contains(&lease.position) || ended.unheld.contains(&place) {
                answers[place] = self.complete_by_place(session, completed, request.now).await?;
            }
            if let Some(held) = held {
                session.forget(lease.position);
                if answers[place] == Settled::Lost {
                    // Its key is not free: what was handed out behind it goes back unseen.
                    let before = picked.len();
                    picked.retain(|one| {
                        held.key.is_none() || (one.held.handler, one.held.key) != (held.handler, held.key)
                    });
                    unseen |= picked.len() < before;
                }
            }
        }
        for id in &ended.dropped {
            session.forget(*id);
        }
        for key in &exhausted {
            session.freed.remove(key);
        }
        // An event was deleted by hand, or a key turned out not to be free: the row lists more than what is in hand.
        session.dirty = unseen;
        let mut turn = Turn::new(answers, runs_of(session, picked), false);
        turn.lanes = turn.runs.iter().map(|run| run.deliveries[0].lease.token.lane).collect::<HashSet<_>>().len();
        turn.taken_over = std::mem::take(&mut session.taken_over);
        Ok(turn)
    }

    /// Buries deliveries whose event somebody deleted: nobody can run them, and each claim would find them first.
    async fn bury_gone(&self, session: &mut PostgresSession, now: Timestamp) -> Result<()> {
        let error = ErrorInfo::of(&Error::store(GONE, None)).to_json();
        let handlers: Vec<i16> = session.handlers.iter().map(|own| own.id).collect();
        let binds =
            Binds::default().with(session.owner.as_str()).with(handlers).with(Time::from(now)).with(error.as_str());
        session.line.rows(&self.sql.bury_gone, binds).await.map(|_| ()).map_err(|error| store_error(TURN, error))
    }

    /// Completes by its place in the index what the turn did not find where it was claimed.
    async fn complete_by_place(
        &self,
        session: &mut PostgresSession,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        let lease = &completed.lease;
        let Some(handler) = self.known_handler(&lease.handler).await? else { return Ok(Settled::Gone) };
        let (key, claims) = super::session::columns_of(lease);
        let text = if key.is_some() { &self.sql.complete_alone_keyed } else { &self.sql.complete_alone_unkeyed };
        let binds = Binds::default()
            .with(Time::from(self.late_before(now)))
            .with(Time::from(now))
            .with(handler)
            .with(Time::from(lease.due_at))
            .with(lease.position)
            .with(claims);
        let rows = session.line.rows(text, binds).await.map_err(|error| store_error(TURN, error))?;
        if rows.is_empty() { self.missed(lease).await } else { Ok(Settled::Applied) }
    }
}

/// The runs of a claim; what they hold is in hand now.
fn runs_of(session: &mut PostgresSession, picked: Vec<Picked>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut last = None;
    for one in picked {
        session.take_in(one.id, one.held);
        match (runs.last_mut(), last == Some(one.run)) {
            (Some(run), true) => run.deliveries.push(one.claimed),
            _ => runs.push(Run::single(one.claimed)),
        }
        last = Some(one.run);
    }
    runs
}
