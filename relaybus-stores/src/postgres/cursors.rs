//! How far a claim looks: cursors, sweeps, and which handlers a turn asks for. Pure state, no I/O.
//!
//! A cursor goes on from where a full claim ended; a claim that was not full starts again a little before now. What commits
//! late, or was given back, is behind the cursor: a sweep walks each handler from the beginning to the end, in turns of its
//! own, at least once in [`SWEEP_EVERY`], one to one with normal turns while either are full. When followers of blocked keys
//! fill a scan, the first delivery of each key is looked up by key instead, from key to key and to the end, and no scan
//! reads followers until the next sweep tries it again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use relaybus::store::{ClaimRequest, TurnRequest};

use super::row::Scanned;
use super::send::Answer;
use super::session::{Cursor, KEYED_ROWS, Own, PostgresSession, Sweep};

/// A sweep begins at least this often.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Rows that a keyed scan reads while keys are looked up one by one.
const WHILE_HIDDEN: usize = 1;
/// Handlers that one claim looks at.
const WINDOW: usize = 64;
/// Of a handler that shares the turn with others that have as much to do, a claim takes this many at least: what was
/// published together is read together, and no handler waits for the whole backlog of another.
const FAIR_ROWS: usize = 20;
/// Handlers that a claim looks at beside those that should fill it, while claims are full.
const SPARE_HANDLERS: usize = 4;
/// While claims are full, every so many of them look whether anything keyed is due; those of a sweep do in any case.
const KEYED_LOOK_EVERY: u8 = 8;

/// What a turn asks of a handler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) place: usize,
    pub(super) slots: usize,
    pub(super) unkeyed: Option<(usize, Cursor)>,
    pub(super) keyed: Option<(usize, Cursor)>,
}

impl Ask {
    /// Does not look at keyed deliveries this time.
    pub(super) fn pass_keyed(&mut self) {
        self.keyed = self.keyed.map(|(_, from)| (0, from));
    }
}

/// Keyed rows that one claim reads of all handlers together.
pub(super) fn keyed_limit(limit: usize, asks: &[Ask]) -> usize {
    let longest = asks.iter().filter_map(|ask| ask.keyed).map(|(rows, _)| rows).max().unwrap_or(0);
    limit.clamp(KEYED_ROWS.0, KEYED_ROWS.1).max(longest)
}

/// Which handlers a turn looks at, from where, and how far.
pub(super) fn plan(session: &mut PostgresSession, claim: &ClaimRequest<'_>, request: &TurnRequest<'_>) -> Vec<Ask> {
    let mut wanted: Vec<(usize, usize)> = claim
        .handlers
        .iter()
        .filter(|slots| slots.limit > 0)
        .filter_map(|slots| Some((session.place_of(&slots.handler)?, slots.limit.min(claim.limit))))
        .filter(|(place, _)| !session.handlers[*place].mask.is_empty())
        .collect();
    if wanted.is_empty() {
        session.unseen = 0;
        return Vec::new();
    }
    let sweep = begin_sweep(session, request, &mut wanted);
    // Each kind of turn goes round by itself: taking turns, they would else meet the same handlers every time.
    let first = session.first[usize::from(sweep)] % wanted.len();
    wanted.rotate_left(first);
    let at_work = wanted.iter().filter(|(place, _)| session.handlers[*place].at_work).count();
    let fair = FAIR_ROWS.max(claim.limit / at_work.max(1));
    // While claims are full, few handlers fill the next one.
    let window = if session.is_deep { SPARE_HANDLERS + claim.limit.div_ceil(fair) } else { WINDOW };
    session.step = if wanted.len() > window { window } else { 1 };
    session.passes_more = wanted.iter().skip(window).any(|(place, _)| sweep || session.handlers[*place].has_more);
    if !sweep {
        let unseen = if session.unseen == 0 { wanted.len() } else { session.unseen };
        session.unseen = unseen.saturating_sub(window);
    }
    wanted.truncate(window);
    let mut asks = Vec::new();
    for (place, slots) in wanted {
        let own = &mut session.handlers[place];
        own.keyed_rows = own.keyed_rows.max(claim.limit.clamp(KEYED_ROWS.0, KEYED_ROWS.1 / 2));
        let keyed_rows = if own.hidden { WHILE_HIDDEN } else { own.keyed_rows };
        if own.hidden && own.loose.is_none() {
            own.loose = Some(i64::MIN);
        }
        let (unkeyed, keyed) = match own.sweep.filter(|_| sweep) {
            Some(sweep) => (sweep.unkeyed, sweep.keyed),
            None => (Some(own.unkeyed), Some(own.keyed)),
        };
        let rows = slots.min(fair);
        let ask = Ask { place, slots, unkeyed: unkeyed.map(|at| (rows, at)), keyed: keyed.map(|at| (keyed_rows, at)) };
        asks.push(ask);
    }
    asks
}

/// Leaves out scans for keyed deliveries where keys that go on take all slots, and in most of the turns that find nothing but
/// unkeyed ones and are full. The scan stays where it is.
pub(super) fn pass_scans(session: &mut PostgresSession, asks: &mut [Ask], goes_on: &[(i16, i64, i64)], limit: usize) {
    // Counted here: the numbers of statements may be odd for every claim that could look.
    if session.only_unkeyed && session.is_deep && !session.last_was_sweep {
        session.passed = (session.passed + 1) % KEYED_LOOK_EVERY;
        if session.passed != 0 {
            asks.iter_mut().for_each(Ask::pass_keyed);
        }
    }
    if goes_on.is_empty() {
        return;
    }
    let mut keys: HashMap<i16, usize> = HashMap::new();
    goes_on.iter().for_each(|(handler, ..)| *keys.entry(*handler).or_default() += 1);
    for ask in asks {
        let taken = keys.get(&session.handlers[ask.place].id).copied().unwrap_or(0);
        if goes_on.len() >= limit || taken >= ask.slots {
            ask.pass_keyed();
        }
    }
}

/// Whether this turn is one of a sweep, which looks only at those of the handlers that it has not come to the end of.
fn begin_sweep(session: &mut PostgresSession, request: &TurnRequest<'_>, wanted: &mut Vec<(usize, usize)>) -> bool {
    let due = session.swept_at.is_none_or(|last| request.now < last || request.now.since(last) >= SWEEP_EVERY);
    if !session.sweeping && (request.sweep || due) {
        session.sweeping = true;
        session.swept_at = Some(request.now);
        for own in &mut session.handlers {
            own.sweep = Some(Sweep { unkeyed: Some(Cursor::START), keyed: Some(Cursor::START) });
            own.hidden = false;
        }
    }
    // While either finds as much as it takes, every second turn is a normal one: what came meanwhile is none of a sweep's that
    // is past it.
    let sweep = session.sweeping && !(session.last_was_sweep && session.last_was_full);
    let open: Vec<(usize, usize)> =
        wanted.iter().filter(|(place, _)| sweep && session.handlers[*place].is_being_swept()).copied().collect();
    if open.is_empty() {
        session.sweeping &= !sweep;
    } else {
        *wanted = open;
    }
    session.last_was_sweep = sweep && session.sweeping;
    session.last_was_sweep
}

/// What a turn read, by handler.
struct Found {
    /// Unkeyed deliveries handed out, and the last one.
    unkeyed: HashMap<i16, (usize, Cursor)>,
    /// Keys of which something was handed out.
    keys: HashMap<i16, HashSet<i64>>,
    scanned: HashMap<i16, Scanned>,
    /// The limit ended the look at unkeyed deliveries, or at keyed ones.
    cut: bool,
    all_scanned: bool,
}

impl Found {
    fn of(Answer { summary, picked, .. }: &Answer, limit: usize, asks: &[Ask]) -> Self {
        let mut unkeyed: HashMap<i16, (usize, Cursor)> = HashMap::new();
        let mut keys: HashMap<i16, HashSet<i64>> = HashMap::new();
        for one in picked {
            if one.held.key.is_some() {
                keys.entry(one.held.handler).or_default().insert(one.run);
                continue;
            }
            let cursor = Cursor { at: one.available_at, id: one.id };
            let entry = unkeyed.entry(one.held.handler).or_insert((0, cursor));
            entry.0 += 1;
            if (cursor.at, cursor.id) > (entry.1.at, entry.1.id) {
                entry.1 = cursor;
            }
        }
        let handed_out = unkeyed.values().map(|one| one.0).sum::<usize>();
        Self {
            cut: summary.unkeyed >= limit || summary.unkeyed > handed_out,
            all_scanned: summary.keyed.iter().map(|one| one.rows).sum::<usize>() >= keyed_limit(limit, asks),
            scanned: summary.keyed.iter().map(|one| (one.handler, *one)).collect(),
            unkeyed,
            keys,
        }
    }

    fn runs(&self) -> usize {
        self.unkeyed.values().map(|one| one.0).sum::<usize>() + self.keys.values().map(HashSet::len).sum::<usize>()
    }

    fn handed_out(&self, handler: i16) -> usize {
        self.unkeyed.get(&handler).map_or(0, |one| one.0)
    }

    /// Moves a handler's cursor of unkeyed deliveries. Whether it has more.
    fn advance_unkeyed(&self, own: &mut Own, (rows, from): (usize, Cursor), sweep: bool, recent: Cursor) -> bool {
        let (count, end) = self.unkeyed.get(&own.id).copied().unwrap_or((0, from));
        let is_full = count >= rows || self.cut;
        own.at_work = count > 0 && is_full;
        let next = is_full.then_some(end);
        match (&mut own.sweep, sweep) {
            (Some(sweep), true) => sweep.unkeyed = next,
            _ => own.unkeyed = next.unwrap_or(recent),
        }
        own.at_work
    }

    /// Moves a handler's cursor of keyed deliveries. Whether it has more.
    fn advance_keyed(&self, own: &mut Own, (rows, from): (usize, Cursor), sweep: bool, recent: Cursor) -> bool {
        if rows == 0 {
            // Not looked at: the next turn does.
            return true;
        }
        let seen = self.scanned.get(&own.id);
        let count = seen.map_or(0, |seen| seen.rows);
        let taken = self.keys.get(&own.id).map_or(0, HashSet::len);
        let heads = seen.map_or(0, |seen| seen.heads);
        let is_full = count >= rows || self.all_scanned;
        let is_cut = heads > taken;
        if own.hidden {
            // The look-up by key tells whether there is more. The scan stays where it is.
            return is_cut;
        }
        if is_full && heads == 0 && count >= rows {
            own.keyed_rows = (rows * 2).min(KEYED_ROWS.1);
            if rows >= KEYED_ROWS.1 {
                own.hide();
                return true;
            }
        } else if taken > 0 {
            own.keyed_rows = 0;
        }
        // Heads that found no slot are found again from here.
        let end = seen.map_or(from, |seen| Cursor { at: seen.at, id: seen.id });
        let next = if is_cut { Some(from) } else { is_full.then_some(end) };
        match (&mut own.sweep, sweep) {
            (Some(sweep), true) => sweep.keyed = next,
            _ => own.keyed = next.unwrap_or(recent),
        }
        is_full || is_cut
    }
}

/// Moves the cursors by what a turn read. Whether more may be due.
pub(super) fn advance(
    session: &mut PostgresSession,
    request: &TurnRequest<'_>,
    limit: usize,
    answer: &Answer,
    asks: &[Ask],
) -> bool {
    if asks.is_empty() {
        return false;
    }
    let found = Found::of(answer, limit, asks);
    let sweep = session.last_was_sweep;
    let recent = session.recent(request.now);
    let mut full = false;
    for ask in asks {
        let own = &mut session.handlers[ask.place];
        let unkeyed = ask.unkeyed.is_some_and(|look| found.advance_unkeyed(own, look, sweep, recent));
        let keyed = ask.keyed.is_some_and(|look| found.advance_keyed(own, look, sweep, recent));
        own.has_more = unkeyed || keyed || (sweep && own.has_more);
        full |= own.has_more;
    }
    // The next turn begins behind the handlers whose turn it was; at the same ones when something keyed is due among them.
    let served = asks.iter().rposition(|ask| found.handed_out(session.handlers[ask.place].id) > 0);
    let (step, looked) = match served.filter(|_| found.cut) {
        _ if answer.summary.keyed_due => (0, 0),
        Some(last) => (last + 1, last + 1),
        None => (session.step, asks.len()),
    };
    let first = &mut session.first[usize::from(sweep)];
    *first = first.wrapping_add(step);
    session.is_deep = found.runs() >= limit;
    if sweep {
        let open = asks.iter().any(|ask| session.handlers[ask.place].is_being_swept());
        session.sweeping = open || session.passes_more;
        session.last_was_full |= full;
    } else {
        session.unseen += asks.len() - looked;
        session.last_was_full = full;
    }
    let loose = asks.iter().any(|ask| session.handlers[ask.place].loose.is_some());
    full || session.passes_more || session.is_deep || session.unseen > 0 || session.sweeping || loose
}
