//! What a turn sends, and the reading of its answer.
//!
//! Three texts, because what the server spends on a statement before it runs it grows with the text: one that claims nothing,
//! one that claims while nothing keyed is at work, and one that claims everything. The second also tells whether anything
//! keyed is due, so the next turn can be of the third kind; of the third kind is the first one of a session, and each behind
//! one that found something keyed.

use std::collections::{HashMap, HashSet};

use relaybus::store::{ClaimRequest, TurnRequest};
use relaybus::{Error, Result};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Inner;
use super::args::{Binds, Tid, Time};
use super::claim::TURN;
use super::cursors::{Ask, keyed_limit, pass_scans};
use super::error::store_error;
use super::row::{Picked, Summary};
use super::session::{Cursor, Held, Mask, PostgresSession};

/// Deliveries that the runs of one claim may add up to, beside the limit of runs.
const RUN_BUDGET: usize = 256;
/// Keys that one look-up of first deliveries reads.
const LOOSE_KEYS: usize = 256;
/// Keys that it reads beyond those that can be picked: of them some are busy or wait.
const LOOSE_SPARE: usize = 2;

/// What a turn sends about what ended.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) tids: Vec<Tid>,
    pub(super) ids: Vec<i64>,
    pub(super) claims: Vec<i32>,
    pub(super) late: Vec<i64>,
    /// Keys that are free now: handler, key, last sequence.
    pub(super) keys: Vec<(i16, i64, i64)>,
    /// Deliveries behind the end of a run that ended early.
    pub(super) dropped: Vec<i64>,
    /// Completions that the session does not hold.
    pub(super) unheld: Vec<usize>,
}

/// What a turn answered.
pub(super) struct Answer {
    /// The session's row had to be written.
    record: bool,
    pub(super) summary: Summary,
    pub(super) picked: Vec<Picked>,
    /// Keys that it went on with as far as they go.
    pub(super) exhausted: Vec<(i16, i64)>,
}

/// A key that goes on: handler, key, last sequence.
type GoesOn = (i16, i64, i64);

impl Inner {
    /// A turn that claims nothing.
    pub(super) async fn send_settled(
        &self,
        session: &mut PostgresSession,
        request: &TurnRequest<'_>,
        ended: &Ended,
    ) -> Result<Answer> {
        let failed = |error| store_error(TURN, error);
        let (binds, record) = settle_binds(session, request, ended);
        let rows = session.line.rows(&self.sql.settle_turn, binds.with(session.place.hint())).await.map_err(failed)?;
        let row = rows.first().ok_or(Error::SessionLost)?;
        Answer {
            record,
            summary: Summary::read_settled(row).map_err(failed)?,
            picked: Vec::new(),
            exhausted: Vec::new(),
        }
        .checked(session)
    }

    /// A turn that claims; what it turned out not to look at is taken out of `asks`.
    pub(super) async fn send_claim(
        &self,
        session: &mut PostgresSession,
        request: &TurnRequest<'_>,
        ended: &Ended,
        claim: &ClaimRequest<'_>,
        asks: &mut [Ask],
    ) -> Result<Answer> {
        let failed = |error| store_error(TURN, error);
        let mut goes_on = self.keys_that_go_on(session, request, ended, asks).await?;
        let room = claim.limit.saturating_sub(goes_on.len());
        goes_on.extend(freed(session, asks, room));
        pass_scans(session, asks, &goes_on, claim.limit);
        let unkeyed = session.only_unkeyed && goes_on.is_empty() && ended.is_plain() && session.runs.is_empty();
        let unkeyed = unkeyed && !asks.iter().any(|ask| session.handlers[ask.place].hidden);
        let (binds, record) = settle_binds(session, request, ended);
        let (text, binds) = if unkeyed {
            (&self.sql.turn_unkeyed, unkeyed_binds(binds, session, claim, asks))
        } else {
            (&self.sql.turn, claim_binds(binds, session, ended, claim, asks, &goes_on))
        };
        let rows: Vec<PgRow> = session.line.rows(text, binds.with(session.place.hint())).await.map_err(failed)?;
        let (first, rest) = rows.split_first().ok_or(Error::SessionLost)?;
        let summary = Summary::read(first).map_err(failed)?;
        let mut picked = Vec::with_capacity(rest.len());
        let name = |id: i16| session.handler(id).map(|own| own.name.clone());
        for row in rest {
            picked.extend(Picked::read(row, session.epoch, name).map_err(failed)?);
        }
        let found_keyed = summary.keyed_due || !summary.keyed.is_empty() || !goes_on.is_empty();
        let looked = unkeyed || asks.iter().all(|ask| ask.keyed.is_some_and(|(rows, _)| rows > 0));
        // What only a sweep finds is handed out by a sweep of the whole text.
        let swept_keyed = |ask: &Ask| session.handlers[ask.place].sweep.is_some_and(|sweep| sweep.keyed.is_some());
        let awaits_sweep = session.sweeping && !session.last_was_sweep && asks.iter().any(swept_keyed);
        session.only_unkeyed = looked && !found_keyed && !awaits_sweep;
        if summary.keyed_due {
            asks.iter_mut().for_each(Ask::pass_keyed);
        }
        let exhausted = exhausted(session, &picked, &goes_on, claim.limit, asks);
        Answer { record, summary, picked, exhausted }.checked(session)
    }

    /// Keys that need not be found by their due time: those that ended now, and the first ones of a look-up by key.
    async fn keys_that_go_on(
        &self,
        session: &mut PostgresSession,
        request: &TurnRequest<'_>,
        ended: &Ended,
        asks: &[Ask],
    ) -> Result<Vec<GoesOn>> {
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
}

impl Ended {
    /// Nothing of it needs more than a deletion.
    fn is_plain(&self) -> bool {
        self.keys.is_empty() && self.late.is_empty()
    }
}

/// Keys that became free without a claim that goes on with them, each from its beginning: as many as can be handed out.
fn freed(session: &mut PostgresSession, asks: &[Ask], room: usize) -> Vec<GoesOn> {
    if room == 0 || session.freed.is_empty() || session.last_was_sweep {
        return Vec::new();
    }
    let asked: HashSet<i16> = ids_of(session, asks).into_iter().collect();
    session.freed_of(&asked, room.min(LOOSE_KEYS)).into_iter().map(|(handler, key)| (handler, key, -1)).collect()
}

/// The keys that went on, less those that may have found no slot: they come before others of their handler, so where another
/// got one, each of them had its turn.
fn exhausted(
    session: &PostgresSession,
    picked: &[Picked],
    goes_on: &[GoesOn],
    limit: usize,
    asks: &[Ask],
) -> Vec<(i16, i64)> {
    if goes_on.is_empty() {
        return Vec::new();
    }
    let went: HashSet<(i16, i64)> = goes_on.iter().map(|(handler, key, _)| (*handler, *key)).collect();
    let mut runs: HashMap<i16, HashSet<i64>> = HashMap::new();
    let mut others: HashSet<i16> = HashSet::new();
    for one in picked {
        runs.entry(one.held.handler).or_default().insert(one.run);
        if one.held.key.is_some_and(|key| !went.contains(&(one.held.handler, key))) {
            others.insert(one.held.handler);
        }
    }
    let is_cut = runs.values().map(HashSet::len).sum::<usize>() >= limit;
    let slots: HashMap<i16, usize> = asks.iter().map(|ask| (session.handlers[ask.place].id, ask.slots)).collect();
    let had_its_turn = |handler: &i16| {
        let taken = runs.get(handler).map_or(0, HashSet::len);
        others.contains(handler) || (!is_cut && slots.get(handler).is_some_and(|&slots| taken < slots))
    };
    went.into_iter().filter(|(handler, _)| had_its_turn(handler)).collect()
}

/// What is in hand, with what ends in this turn, and may be found again behind the cursors.
fn found_again(session: &PostgresSession, asks: &[Ask]) -> Vec<i64> {
    let from: HashMap<i16, Cursor> =
        asks.iter().filter_map(|ask| Some((session.handlers[ask.place].id, ask.unkeyed?.1))).collect();
    let is_behind =
        |id: i64, held: &Held| from.get(&held.handler).is_some_and(|from| (held.due_at, id) > (from.at, from.id));
    session.held.iter().filter(|(id, held)| is_behind(**id, held)).map(|(id, _)| *id).collect()
}

/// The parts of a question about unkeyed or keyed deliveries: rows, and the two halves of the cursors.
fn part(asks: &[Ask], of: fn(&Ask) -> Option<(usize, Cursor)>) -> (Vec<i32>, Vec<Time>, Vec<i64>) {
    let all: Vec<(usize, Cursor)> = asks.iter().map(|ask| of(ask).unwrap_or((0, Cursor::END))).collect();
    (
        all.iter().map(|(rows, _)| int(*rows)).collect(),
        all.iter().map(|(_, cursor)| cursor.at).collect(),
        all.iter().map(|(_, cursor)| cursor.id).collect(),
    )
}

fn ids_of(session: &PostgresSession, asks: &[Ask]) -> Vec<i16> {
    asks.iter().map(|ask| session.handlers[ask.place].id).collect()
}

fn masks_of<'s>(session: &'s PostgresSession, asks: &[Ask]) -> Vec<&'s [u8]> {
    asks.iter().map(|ask| session.handlers[ask.place].mask.0.as_slice()).collect()
}

fn unkeyed_binds(binds: Binds, session: &PostgresSession, claim: &ClaimRequest<'_>, asks: &[Ask]) -> Binds {
    let (rows, ats, ids) = part(asks, |ask| ask.unkeyed);
    let looks: Vec<Ask> = asks.iter().filter(|ask| ask.keyed.is_some_and(|(rows, _)| rows > 0)).copied().collect();
    let (_, keyed_ats, keyed_ids) = part(&looks, |ask| ask.keyed);
    binds
        .with(found_again(session, asks))
        .with(int(claim.limit))
        .with(ids_of(session, asks))
        .with(masks_of(session, asks))
        .with(rows)
        .with(ats)
        .with(ids)
        .with(ids_of(session, &looks))
        .with(masks_of(session, &looks))
        .with(keyed_ats)
        .with(keyed_ids)
}

fn claim_binds(
    binds: Binds,
    session: &PostgresSession,
    ended: &Ended,
    claim: &ClaimRequest<'_>,
    asks: &[Ask],
    goes_on: &[GoesOn],
) -> Binds {
    let free: HashSet<(i16, i64)> = ended.keys.iter().map(|(handler, key, _)| (*handler, *key)).collect();
    let busy: Vec<(i16, i64)> = session.runs.keys().copied().filter(|run| !free.contains(run)).collect();
    let (unkeyed_rows, unkeyed_ats, unkeyed_ids) = part(asks, |ask| ask.unkeyed);
    let (keyed_rows, keyed_ats, keyed_ids) = part(asks, |ask| ask.keyed);
    binds
        .with(int(claim.run_length.max(1)))
        .with(int(RUN_BUDGET.max(claim.limit)))
        .with(busy.iter().map(|(handler, _)| *handler).collect::<Vec<i16>>())
        .with(busy.iter().map(|(_, key)| *key).collect::<Vec<i64>>())
        .with(goes_on.iter().map(|(handler, _, _)| *handler).collect::<Vec<i16>>())
        .with(goes_on.iter().map(|(_, key, _)| *key).collect::<Vec<i64>>())
        .with(goes_on.iter().map(|(_, _, after)| *after).collect::<Vec<i64>>())
        .with(int(claim.limit))
        .with(ids_of(session, asks))
        .with(asks.iter().map(|ask| int(ask.slots)).collect::<Vec<i32>>())
        .with(masks_of(session, asks))
        .with(unkeyed_rows)
        .with(unkeyed_ats)
        .with(unkeyed_ids)
        .with(keyed_rows)
        .with(keyed_ats)
        .with(keyed_ids)
        .with(int(keyed_limit(claim.limit, asks)))
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
