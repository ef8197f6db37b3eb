//! What a session remembers: its statements' number, what it owns, what it holds, and how far it has looked.
//!
//! Pure state, no I/O. The database's row of the session is the truth for everybody else; this is the truth for the process:
//! a lane counts as owned only from the answer of the statement that took it, and no longer from the moment the statement
//! that hands it back is sent.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use relaybus::store::Lease;
use relaybus::{HandlerId, Timestamp};

use super::args::{Tid, Time, claims_column, key_number};
use super::line::Line;

/// Keyed rows that a claim reads of a handler at least, and at most when it finds nothing.
pub(super) const KEYED_ROWS: (usize, usize) = (32, 1_024);
/// How far before now a claim starts that is not sure to have seen everything older, when nobody knows what is open.
const LOOK_BACK: Duration = Duration::from_secs(30);
/// How much earlier than its transaction an event may have got its time: the clocks' difference, and what it waited for.
const LOOK_BACK_MARGIN: Duration = Duration::from_secs(1);

/// Keys that are remembered because their run ended without a claim.
const MOST_FREED: usize = 1_024;

/// A set of lanes, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mask(pub(super) [u8; 32]);

impl Mask {
    pub(super) const NONE: Self = Self([0; 32]);

    pub(super) fn has(&self, lane: u8) -> bool {
        self.0[usize::from(lane / 8)] & (1 << (lane % 8)) != 0
    }

    pub(super) fn set(&mut self, lane: u8, on: bool) {
        let bit = 1 << (lane % 8);
        let byte = &mut self.0[usize::from(lane / 8)];
        if on { *byte |= bit } else { *byte &= !bit }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&byte| byte == 0)
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// The lanes of `owners` that belong to session number `no`.
    pub(super) fn owned(owners: &[u8], no: i16) -> Self {
        let mut mask = Self::NONE;
        for lane in 0..=u8::MAX {
            mask.set(lane, owners.get(usize::from(lane)).is_some_and(|&owner| i16::from(owner) == no));
        }
        mask
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|&lane| self.has(lane))
    }
}

/// A row that is found by its place is found by its owner once in so many turns.
const LOOK_BY_OWNER: u32 = 32;

/// Where the session's row was last written.
///
/// A look by its owner removes old versions of the row from its page, so that the row stays in it. While somebody holds an old
/// snapshot, they cannot go: the row wanders through pages, and each look by its owner passes all versions. Then it is looked for
/// where it was written last, until one of the looks by its owner in between finds that versions go again.
#[derive(Debug, Default)]
pub(super) struct Place {
    at: Tid,
    wanders: bool,
    turns: u32,
}

impl Place {
    /// Where to look; nowhere, to look by its owner.
    pub(super) fn hint(&mut self) -> Tid {
        self.turns = self.turns.wrapping_add(1);
        if self.wanders && !self.turns.is_multiple_of(LOOK_BY_OWNER) { self.at } else { Tid::default() }
    }

    /// It was written there by the turn of the last hint.
    pub(super) fn moved(&mut self, to: Tid) {
        if self.at != Tid::default() && to.block != self.at.block {
            self.wanders = true;
        } else if self.turns.is_multiple_of(LOOK_BY_OWNER) && to.place < self.at.place {
            self.wanders = false;
        }
        self.at = to;
    }
}

/// How far a claim has looked: it goes on behind this row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) at: Time,
    pub(super) id: i64,
}

impl Cursor {
    pub(super) const START: Self = Self { at: Time::MIN, id: 0 };
    /// Behind everything.
    pub(super) const END: Self = Self { at: Time::MAX, id: i64::MAX };
}

/// How far a sweep has come with a handler; a part that is at its end is `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    pub(super) unkeyed: Option<Cursor>,
    pub(super) keyed: Option<Cursor>,
}

/// A handler of this session.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) id: i16,
    pub(super) name: HandlerId,
    /// Lanes that it claims from.
    pub(super) mask: Mask,
    /// Lanes that are to be handed back: owned still, but no claim touches them.
    pub(super) leaving: Mask,
    /// The epoch at which lanes were seen free.
    pub(super) free_since: Option<i64>,
    pub(super) unkeyed: Cursor,
    pub(super) keyed: Cursor,
    pub(super) sweep: Option<Sweep>,
    /// The last look found as many unkeyed deliveries as it asked for, or there was none yet.
    pub(super) at_work: bool,
    /// The last look left something that may be due.
    pub(super) has_more: bool,
    pub(super) keyed_rows: usize,
    /// Followers hide everything else: until the next sweep, keys are looked up one by one.
    pub(super) hidden: bool,
    /// Behind which key that look-up goes on; `None` when it came to the end.
    pub(super) loose: Option<i64>,
    /// Keys that one look-up reads beyond what it has to: more when it finds none that is due.
    pub(super) loose_keys: usize,
}

impl Own {
    pub(super) fn new(id: i16, name: HandlerId) -> Self {
        Self {
            id,
            name,
            mask: Mask::NONE,
            leaving: Mask::NONE,
            free_since: None,
            unkeyed: Cursor::START,
            keyed: Cursor::START,
            sweep: None,
            at_work: true,
            has_more: false,
            keyed_rows: 0,
            hidden: false,
            loose: None,
            loose_keys: 0,
        }
    }

    /// From here on its keys are looked up one by one, to the end and all over again: no scan of followers, and no sweep of them.
    pub(super) fn hide(&mut self) {
        self.hidden = true;
        self.loose = Some(i64::MIN);
        if let Some(sweep) = &mut self.sweep {
            sweep.keyed = None;
        }
    }

    /// A sweep has begun and not come to its end.
    pub(super) fn is_being_swept(&self) -> bool {
        self.sweep.is_some_and(|sweep| sweep.unkeyed.is_some() || sweep.keyed.is_some())
    }

    pub(super) fn rewind(&mut self) {
        (self.unkeyed, self.keyed) = (Cursor::START, Cursor::START);
    }
}

/// A delivery this session holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) tid: Tid,
    pub(super) handler: i16,
    pub(super) key: Option<i64>,
    pub(super) sequence: i64,
    pub(super) claims: i64,
    pub(super) lane: u8,
    pub(super) due_at: Time,
    pub(super) stored_at: Timestamp,
}

/// A dispatcher's session with a [`super::PostgresStore`].
#[derive(Debug)]
pub struct PostgresSession {
    pub(super) owner: String,
    pub(super) no: i16,
    pub(super) epoch: i64,
    turn: i64,
    pub(super) place: Place,
    pub(super) line: Line,
    /// By their numbers.
    pub(super) handlers: Vec<Own>,
    by_name: HashMap<HandlerId, usize>,
    pub(super) held: HashMap<i64, Held>,
    /// The deliveries of each key that is in hand, in their order.
    pub(super) runs: HashMap<(i16, i64), VecDeque<i64>>,
    /// Keys whose run ended and that no claim has gone on with since, and their lanes. What follows may be older than a claim looks.
    pub(super) freed: HashMap<(i16, i64), u8>,
    /// What the row of the session lists is more than what is held.
    pub(super) dirty: bool,
    /// A statement about lanes has not been answered: what is owned must be read again.
    pub(super) unsure: bool,
    /// Its row says that it wants lanes that others have too many of.
    pub(super) wants: bool,
    /// The handler that a claim begins with: a normal one, and one of a sweep.
    pub(super) first: [usize; 2],
    /// How far the next turn begins behind this one, unless this one's limit ends it earlier.
    pub(super) step: usize,
    /// A handler that this turn has no room to look at has more.
    pub(super) passes_more: bool,
    /// Handlers that the current pass has not looked at yet.
    pub(super) unseen: usize,
    pub(super) sweeping: bool,
    pub(super) last_was_sweep: bool,
    pub(super) last_was_full: bool,
    pub(super) swept_at: Option<Timestamp>,
    /// It took a turn, with lanes or without.
    pub(super) has_turned: bool,
    pub(super) taken_over: usize,
    look_from: Option<Timestamp>,
    /// The last claim found as much as it could hand out.
    pub(super) is_deep: bool,
    /// The last claim found nothing keyed.
    pub(super) only_unkeyed: bool,
    /// Claims since the last one that looked for something keyed.
    pub(super) passed: u8,
}

impl PostgresSession {
    pub(super) fn new(owner: String, no: i16, epoch: i64, line: Line, handlers: Vec<Own>) -> Self {
        let by_name = handlers.iter().enumerate().map(|(place, own)| (own.name.clone(), place)).collect();
        Self {
            owner,
            no,
            epoch,
            turn: 0,
            place: Place::default(),
            line,
            handlers,
            by_name,
            held: HashMap::new(),
            runs: HashMap::new(),
            freed: HashMap::new(),
            dirty: false,
            unsure: false,
            wants: false,
            first: [0; 2],
            step: 1,
            is_deep: false,
            passes_more: false,
            unseen: 0,
            sweeping: false,
            last_was_sweep: false,
            last_was_full: false,
            swept_at: None,
            has_turned: false,
            taken_over: 0,
            look_from: None,
            only_unkeyed: false,
            passed: 0,
        }
    }

    /// Claims that are not sure to have seen everything older begin before everything that is in a transaction which is still
    /// open: what commits later is behind that, or is found by the next sweep. `open_for` is the age of the oldest one.
    pub(super) fn look_back_to(&mut self, now: Timestamp, open_for: Option<Duration>) {
        self.look_from = open_for.map(|age| now.before(age.saturating_add(LOOK_BACK_MARGIN)));
    }

    /// Where such a claim begins.
    pub(super) fn recent(&self, now: Timestamp) -> Cursor {
        let from = self.look_from.unwrap_or_else(|| now.before(LOOK_BACK));
        Cursor { at: Time::from(from.min(now)), id: 0 }
    }

    /// The number of the next statement.
    pub(super) fn next_turn(&mut self) -> i64 {
        self.turn += 1;
        self.turn
    }

    pub(super) fn place_of(&self, name: &HandlerId) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn handler(&self, id: i16) -> Option<&Own> {
        self.handlers.binary_search_by_key(&id, |own| own.id).ok().map(|place| &self.handlers[place])
    }

    pub(super) fn handler_mut(&mut self, id: i16) -> Option<&mut Own> {
        self.handlers.binary_search_by_key(&id, |own| own.id).ok().map(|place| &mut self.handlers[place])
    }

    /// What it holds under this lease, if it does.
    pub(super) fn holds(&self, lease: &Lease) -> Option<&Held> {
        self.held.get(&lease.position).filter(|held| held.claims == lease.token.claims)
    }

    pub(super) fn take_in(&mut self, id: i64, held: Held) {
        if let Some(key) = held.key {
            self.freed.remove(&(held.handler, key));
            self.runs.entry((held.handler, key)).or_default().push_back(id);
        }
        self.held.insert(id, held);
    }

    /// Forgets a delivery; the run of its key ends with its last one.
    pub(super) fn forget(&mut self, id: i64) {
        let Some(held) = self.held.remove(&id) else { return };
        let Some(key) = held.key else { return };
        if let Some(run) = self.runs.get_mut(&(held.handler, key)) {
            run.retain(|&other| other != id);
            if run.is_empty() {
                self.runs.remove(&(held.handler, key));
                self.freed.insert((held.handler, key), held.lane);
            }
        }
        if self.freed.len() > MOST_FREED {
            // The scans find them, from the beginning.
            self.freed.clear();
            self.handlers.iter_mut().for_each(|own| own.keyed = Cursor::START);
        }
    }

    /// Keys of these handlers that became free without a claim, so many at most.
    pub(super) fn freed_of(&mut self, handlers: &HashSet<i16>, most: usize) -> Vec<(i16, i64)> {
        let masks: HashMap<i16, Mask> = self.handlers.iter().map(|own| (own.id, own.mask)).collect();
        self.freed.retain(|(handler, _), lane| masks.get(handler).is_some_and(|mask| mask.has(*lane)));
        self.freed.keys().copied().filter(|(handler, _)| handlers.contains(handler)).take(most).collect()
    }

    /// The deliveries behind `id` in its run.
    pub(super) fn rest_of(&self, held: &Held, id: i64) -> impl Iterator<Item = i64> {
        let run = held.key.and_then(|key| self.runs.get(&(held.handler, key)));
        run.into_iter().flatten().copied().filter(move |&other| other != id)
    }

    /// The ids it holds, without those that end now.
    pub(super) fn running(&self, ending: &HashSet<i64>) -> Vec<i64> {
        let mut running: Vec<i64> = self.held.keys().copied().filter(|id| !ending.contains(id)).collect();
        running.sort_unstable();
        running
    }

    /// Forgets what ended without a statement of this session.
    pub(super) fn finish(&mut self, finished: &[Lease]) {
        for lease in finished {
            if self.holds(lease).is_some() {
                self.forget(lease.position);
            }
        }
    }

    /// The lanes of a handler in which it holds something.
    pub(super) fn busy_lanes(&self, handler: i16) -> Mask {
        let mut mask = Mask::NONE;
        for held in self.held.values().filter(|held| held.handler == handler) {
            mask.set(held.lane, true);
        }
        mask
    }
}

/// The number of a lease's key, and its claims as the column holds them.
pub(super) fn columns_of(lease: &Lease) -> (Option<i64>, i32) {
    (lease.key.as_ref().map(|key| key_number(key.as_str())), claims_column(lease.token.claims))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_count_their_lanes() {
        let mut mask = Mask::NONE;
        assert!(mask.is_empty());
        for lane in [0, 7, 8, 255] {
            mask.set(lane, true);
        }
        assert_eq!((mask.count(), mask.lanes().collect::<Vec<_>>()), (4, vec![0, 7, 8, 255]));
        mask.set(7, false);
        assert!(!mask.has(7) && mask.has(8));
        let mut owners = vec![0; 256];
        owners[3] = 200;
        assert_eq!(Mask::owned(&owners, 200).lanes().collect::<Vec<_>>(), [3]);
    }
}
