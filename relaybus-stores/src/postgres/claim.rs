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
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Inner;
use super::args::{Binds, Tid, Time};
use super::cursors::{Ask, advance, keyed_limit, plan};
use super::error::store_error;
use super::row::{Picked, Summary};
use super::session::{Cursor, Mask, PostgresSession};

/// Deliveries that the runs of one claim may add up to, beside the limit of runs.
const RUN_BUDGET: usize = 256;
/// Deliveries in hand beyond which nothing is claimed: what fits into the session's row.
const MOST_HELD: usize = 900;
/// Keys that one look-up of first deliveries reads.
const LOOSE_KEYS: usize = 256;
/// Keys that it reads beyond those that can be picked: of them some are busy or wait.
const LOOSE_SPARE: usize = 2;

const TURN: &str = "take a turn";
/// The error of a delivery whose event is not there.
const GONE: &str = "the event of this delivery was deleted from the table of events: delete its deliveries too";

/// What a turn sends about what ended.
#[derive(Default)]
struct Ended {
    tids: Vec<Tid>,
    ids: Vec<i64>,
    claims: Vec<i32>,
    late: Vec<i64>,
    /// Keys that are free now: handler, key, last sequence.
    keys: Vec<(i16, i64, i64)>,
    /// Deliveries behind the end of a run that ended early.
    dropped: Vec<i64>,
    /// Completions that the session does not hold.
    unheld: Vec<usize>,
}

/// What a turn answered.
pub(super) struct Answer {
    /// The session's row had to be written.
    record: bool,
    pub(super) summary: Summary,
    pub(super) picked: Vec<Picked>,
}

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
        let asks = claim.map_or_else(Vec::new, |claim| plan(session, &claim, request));
        let answer = match claim {
            Some(claim) if !asks.is_empty() => self.send_claim(session, request, &ended, &claim, &asks).await?,
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
        let done: HashSet<i64> = ended.ids.iter().copied().collect();
        for completed in request.completed {
            let Some(held) = session.holds(&completed.lease) else { continue };
            let Some(key) = held.key else { continue };
            let rest: Vec<i64> =
                session.rest_of(held, completed.lease.position).into_iter().filter(|id| !done.contains(id)).collect();
            if completed.part == RunPart::Last || rest.is_empty() {
                ended.keys.retain(|(handler, other, _)| (*handler, *other) != (held.handler, key));
                ended.keys.push((held.handler, key, held.sequence));
                ended.dropped.extend(rest);
            }
        }
        ended
    }

    async fn send_settled(
        &self,
        session: &mut PostgresSession,
        request: &TurnRequest<'_>,
        ended: &Ended,
    ) -> Result<Answer> {
        let failed = |error| store_error(TURN, error);
        let (binds, record) = settle_binds(session, request, ended);
        let rows = session.line.rows(&self.sql.settle_turn, binds.with(session.place.hint())).await.map_err(failed)?;
        let row = rows.first().ok_or(Error::SessionLost)?;
        Answer { record, summary: Summary::read_settled(row, 0).map_err(failed)?, picked: Vec::new() }.checked(session)
    }

    async fn send_claim(
        &self,
        session: &mut PostgresSession,
        request: &TurnRequest<'_>,
        ended: &Ended,
        claim: &ClaimRequest<'_>,
        asks: &[Ask],
    ) -> Result<Answer> {
        let failed = |error| store_error(TURN, error);
        let goes_on = self.keys_that_go_on(session, request, ended, asks).await?;
        let (binds, record) = settle_binds(session, request, ended);
        let limit = claim.limit;
        let free: HashSet<(i16, i64)> = ended.keys.iter().map(|(handler, key, _)| (*handler, *key)).collect();
        let busy: Vec<(i16, i64)> = session.runs.keys().copied().filter(|run| !free.contains(run)).collect();
        let masks: Vec<&[u8]> = asks.iter().map(|ask| session.handlers[ask.place].mask.0.as_slice()).collect();
        let part = |of: fn(&Ask) -> Option<(usize, Cursor)>| -> (Vec<i32>, Vec<Time>, Vec<i64>) {
            let all = asks.iter().map(|ask| of(ask).unwrap_or((0, Cursor::START)));
            let all: Vec<(i32, Time, i64)> = all.map(|(rows, cursor)| (int(rows), cursor.at, cursor.id)).collect();
            (
                all.iter().map(|one| one.0).collect(),
                all.iter().map(|one| one.1).collect(),
                all.iter().map(|one| one.2).collect(),
            )
        };
        let (unkeyed_rows, unkeyed_ats, unkeyed_ids) = part(|ask| ask.unkeyed);
        let (keyed_rows, keyed_ats, keyed_ids) = part(|ask| ask.keyed);
        let binds = binds
            .with(int(claim.run_length.max(1)))
            .with(int(RUN_BUDGET.max(limit)))
            .with(busy.iter().map(|(handler, _)| *handler).collect::<Vec<i16>>())
            .with(busy.iter().map(|(_, key)| *key).collect::<Vec<i64>>())
            .with(goes_on.iter().map(|(handler, _, _)| *handler).collect::<Vec<i16>>())
            .with(goes_on.iter().map(|(_, key, _)| *key).collect::<Vec<i64>>())
            .with(goes_on.iter().map(|(_, _, after)| *after).collect::<Vec<i64>>())
            .with(int(limit))
            .with(asks.iter().map(|ask| session.handlers[ask.place].id).collect::<Vec<i16>>())
            .with(asks.iter().map(|ask| int(ask.slots)).collect::<Vec<i32>>())
            .with(masks)
            .with(unkeyed_rows)
            .with(unkeyed_ats)
            .with(unkeyed_ids)
            .with(keyed_rows)
            .with(keyed_ats)
            .with(keyed_ids)
            .with(int(keyed_limit(limit, asks)))
            .with(session.place.hint());
        let rows: Vec<PgRow> = session.line.rows(&self.sql.turn, binds).await.map_err(failed)?;
        let mut summary = None;
        let mut picked = Vec::with_capacity(rows.len());
        for row in &rows {
            if let Some(read) = Summary::read(row).map_err(failed)? {
                summary = Some(read);
            }
            let name = |id: i16| session.handler(id).map(|own| own.name.clone());
            if let Some(read) = Picked::read(row, session.epoch, name).map_err(failed)? {
                picked.push(read);
            }
        }
        Answer { record, summary: summary.ok_or(Error::SessionLost)?, picked }.checked(session)
    }

    /// Keys that need not be found by their due time: those that ended now, and the first ones of a look-up by key.
    async fn keys_that_go_on(
        &self,
        session: &mut PostgresSession,
        request: &TurnRequest<'_>,
        ended: &Ended,
        asks: &[Ask],
    ) -> Result<Vec<(i16, i64, i64)>> {
        let asked: HashMap<i16, Mask> =
            asks.iter().map(|ask| (session.handlers[ask.place].id, session.handlers[ask.place].mask)).collect();
        let mut all = Vec::new();
        // A sweep finds lower sequences that came back to a hot key: it takes each key from its beginning.
        if !session.last_was_sweep {
            let lane = |id: i64| session.held.get(&id).map(|held| held.lane);
            let lanes: HashMap<(i16, i64), u8> = session
                .runs
                .iter()
                .filter_map(|(key, run)| Some((*key, run.front().and_then(|&id| lane(id))?)))
                .collect();
            all.extend(ended.keys.iter().copied().filter(|(handler, key, _)| {
                let lane = lanes.get(&(*handler, *key));
                lane.is_some_and(|&lane| asked.get(handler).is_some_and(|mask| mask.has(lane)))
            }));
        }
        for ask in asks {
            let (id, mask) = (session.handlers[ask.place].id, session.handlers[ask.place].mask);
            let Some(behind) = session.handlers[ask.place].loose else { continue };
            let most = (ask.slots + LOOSE_SPARE).max(session.handlers[ask.place].loose_keys).min(LOOSE_KEYS);
            let binds = Binds::default().with(id).with(behind).with(int(most));
            let rows = session.line.rows(&self.sql.loose, binds).await.map_err(|error| store_error(TURN, error))?;
            let (mut last, before) = (None, all.len());
            for row in &rows {
                let read = || -> std::result::Result<(i64, Time, i16), sqlx::Error> {
                    Ok((row.try_get_unchecked(0)?, row.try_get_unchecked(1)?, row.try_get_unchecked(2)?))
                };
                let (key, at, lane) = read().map_err(|error| store_error(TURN, error))?;
                last = Some(key);
                if at <= Time::from(request.now) && u8::try_from(lane).is_ok_and(|lane| mask.has(lane)) {
                    all.push((id, key, -1));
                }
            }
            let own = &mut session.handlers[ask.place];
            own.loose = last.filter(|_| rows.len() == most);
            own.loose_keys = if all.len() > before { 0 } else { most * 2 };
        }
        Ok(all)
    }

    /// Takes in the answer: forgets what ended, and builds what is handed out.
    async fn conclude(
        &self,
        session: &mut PostgresSession,
        request: &TurnRequest<'_>,
        ended: Ended,
        answer: Answer,
    ) -> Result<Turn> {
        let Answer { summary, mut picked, .. } = answer;
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
        let text = if key.is_some() { &self.sql.complete_keyed } else { &self.sql.complete_unkeyed };
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

/// The binds that every turn has, and whether it writes the session's row in any case.
fn settle_binds(session: &mut PostgresSession, request: &TurnRequest<'_>, ended: &Ended) -> (Binds, bool) {
    let ending: HashSet<i64> = ended.ids.iter().chain(&ended.dropped).copied().collect();
    let record = request.renew.is_some() || session.dirty || !ended.dropped.is_empty();
    // Until the answer is there, the row may list other deliveries than those that are held.
    session.dirty = true;
    let binds = Binds::default()
        .with(session.owner.as_str())
        .with(Time::from(request.now))
        .with(session.next_turn())
        .with(session.running(&ending))
        .with(ended.tids.as_slice())
        .with(ended.ids.as_slice())
        .with(ended.claims.as_slice())
        .with(ended.late.as_slice())
        .with(request.renew.map(Time::from))
        .with(record);
    (binds, record)
}

impl Answer {
    /// This answer, unless it shows that the session has ended.
    fn checked(self, session: &mut PostgresSession) -> Result<Self> {
        if !self.summary.alive || ((self.record || self.summary.picks > 0) && self.summary.recorded.is_none()) {
            return Err(Error::SessionLost);
        }
        if let Some(place) = self.summary.recorded {
            session.place.moved(place);
        }
        session.dirty = false;
        Ok(self)
    }
}

fn int(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
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
