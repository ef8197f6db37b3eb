//! The takeover: `lock_expired`, then everything else up to the commit, or a rollback.
//!
//! Between the two others run; what they wait for is the lock of the session's row. The rows behind it are read after it.

use crate::config::{Config, bits};
use crate::database::free_lanes;
use crate::invariants::{CHARGED_AFTER, CHARGED_FOLLOWER, CHARGED_TWICE, NOT_CHARGED, NOT_FENCED};
use crate::mutant::Mutant;
use crate::state::{D, H, Lanes, Lock, Owner, Ran, Session, State, Tx};

/// `lock_expired`: the first expired session whose row is not locked.
pub(crate) fn lock_expired(config: &Config, state: &mut State, worker: usize) -> bool {
    let me = state.owner(worker);
    let has_lanes = |row: &Session| state.lanes_of(row.no) != [0; H] || !config.lacks(Mutant::TakeoverNeedsLanes);
    let fits = |row: &&Session| row.expired && row.lock == Lock::None && row.owner != me && has_lanes(row);
    let Some(owner) = state.sessions.iter().find(fits).map(|row| row.owner) else { return false };
    let locker = u8::try_from(worker).unwrap_or(u8::MAX);
    if let Some(row) = state.row_mut(owner) {
        row.lock = Lock::Worker(locker);
        row.read = if config.lacks(Mutant::TakeoverReadsBeforeLock) { row.in_flight } else { 0 };
    }
    true
}

/// The session that a worker is taking over.
pub(crate) fn victim(state: &State, worker: usize) -> Option<Owner> {
    let mine = |row: &&Session| row.lock == Lock::Worker(u8::try_from(worker).unwrap_or(u8::MAX));
    state.sessions.iter().find(mine).map(|row| row.owner)
}

/// `ROLLBACK`, or the end of its connection.
pub(crate) fn roll_back(state: &mut State, victim: Owner) {
    if let Some(row) = state.row_mut(victim) {
        (row.lock, row.read) = (Lock::None, 0);
    }
}

struct Freed {
    held: u8,
    charged: u8,
}

/// `lock_pairs`, `lock_held`, `count_held`, `free_held`, `free_pairs`, `delete_session`, `COMMIT`; a delivery that is locked
/// rolls it back.
pub(crate) fn free(config: &Config, state: &mut State, victim: Owner, known: u8) -> Result<(), &'static str> {
    let Some(row) = state.row(victim).copied() else { return Ok(()) };
    let lanes = state.lanes_of(row.no);
    let all_but = |mutant: Mutant| if config.lacks(mutant) { known } else { u8::MAX };
    let fenced = all_but(Mutant::TakeoverPartial) & all_but(Mutant::TakeoverFencesKnown);
    let mut held = held(config, state, &row, &lanes, fenced);
    let locked =
        bits(held).filter(|&place| state.deliveries[place].tx != Tx::None).fold(0_u8, |set, place| set | 1 << place);
    if locked != 0 {
        if !config.lacks(Mutant::TakeoverPastLocks) {
            roll_back(state, victim);
            return Ok(());
        }
        held &= !locked;
    }
    let heads =
        bits(held).filter(|&place| config.before(place) & held == 0 || config.lacks(Mutant::TakeoverChargesAll));
    let charged = heads.filter(|_| !config.lacks(Mutant::TakeoverWithoutCharge)).fold(0, |set, place| set | 1 << place);
    let freed = Freed { held, charged };
    check(config, state, victim, &freed)?;
    for place in bits(held) {
        let delivery = &mut state.deliveries[place];
        if !config.lacks(Mutant::TakeoverWithoutBump) {
            delivery.claims += 1;
        }
        (delivery.holder, delivery.ran) = (0, Ran::Not);
    }
    for delivery in state.deliveries.iter_mut().filter(|delivery| delivery.holder == victim) {
        (delivery.holder, delivery.ran) = (0, Ran::Not);
    }
    if !config.lacks(Mutant::TakeoverLeavesBytes) {
        free_lanes(state, row.no, all_but(Mutant::TakeoverPartial));
    }
    if config.lacks(Mutant::TakeoverKeepsRow) {
        roll_back(state, victim);
        if let Some(row) = state.row_mut(victim) {
            row.in_flight = 0;
        }
    } else {
        state.sessions.retain(|other| other.owner != victim);
    }
    Ok(())
}

/// `lock_held`: the rows that the session lists, in its lanes, due not later than its last record.
fn held(config: &Config, state: &State, row: &Session, lanes: &Lanes, known: u8) -> u8 {
    let fits = |place: &usize| {
        let delivery = &config.deliveries[*place];
        let owned = lanes[delivery.handler] & (1 << delivery.lane) != 0;
        state.deliveries[*place].is_live()
            && known & (1 << delivery.handler) != 0
            && (owned || config.lacks(Mutant::TakeoverBeyondLanes))
    };
    let listed = if config.lacks(Mutant::TakeoverReadsBeforeLock) { row.read } else { row.in_flight };
    bits(listed & row.reach).filter(fits).fold(0, |set, place| set | 1 << place)
}

fn check(config: &Config, state: &mut State, victim: Owner, freed: &Freed) -> Result<(), &'static str> {
    for place in bits(freed.charged) {
        let delivery = state.deliveries[place];
        if delivery.holder != victim {
            return Err(CHARGED_AFTER);
        }
        let waits = bits(config.before(place) & !state.requeued).any(|before| state.deliveries[before].is_live());
        if delivery.ran == Ran::Not && waits {
            return Err(CHARGED_FOLLOWER);
        }
        let runs =
            |other: usize| state.deliveries[other].holder == victim && state.deliveries[other].ran == Ran::Started;
        if delivery.ran == Ran::Succeeded && bits(config.chain(place)).any(runs) {
            if state.innocent & (1 << place) != 0 {
                return Err(CHARGED_TWICE);
            }
            state.innocent |= 1 << place;
        }
    }
    for place in 0..D {
        let delivery = &state.deliveries[place];
        if delivery.holder != victim || delivery.ran != Ran::Started {
            continue;
        }
        if freed.held & (1 << place) == 0 {
            return Err(NOT_FENCED);
        }
        if freed.charged & (1 << place | config.before(place)) == 0 {
            return Err(NOT_CHARGED);
        }
    }
    Ok(())
}
