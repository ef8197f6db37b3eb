//! A worker's side of the lanes: `share_lanes`, and the parts of it that are still to be sent.

use crate::config::{Config, bits};
use crate::mutant::Mutant;
use crate::state::{H, Lanes, Out, Plan, State};
use crate::statement::{Answer, Stmt};
use crate::work::{lose_session, send};

/// Begins a look: after a lost answer with a numbered statement, so that what was sent before it does nothing.
pub(crate) fn look(config: &Config, state: &mut State, worker: usize) {
    let me = &mut state.workers[worker];
    if me.unsure && !config.lacks(Mutant::UnnumberedReread) {
        let turn = me.turn + 1;
        send(state, worker, Stmt::TouchSession { turn, wants: state.workers[worker].wants, reread: true });
    } else {
        send(state, worker, Stmt::Shares);
    }
}

/// Whether a look would change something. Those that would not are left out.
pub(crate) fn is_worth_a_look(config: &Config, state: &State, worker: usize) -> bool {
    let me = &state.workers[worker];
    let owner = state.owner(worker);
    let Some(row) = state.row(owner) else { return me.unsure };
    let mine = state.lanes_of(row.no);
    let idle = idle_lanes(config, state, worker);
    me.unsure
        || (may_hand_back(config, state, worker) && idle != [0; H])
        || bits(me.handlers).any(|handler| {
            let free = state.owners[handler][..config.lanes].contains(&0);
            let known = me.mask[handler] | me.leaving[handler];
            let live = |other: &&crate::state::Session| {
                (!other.expired || other.owner == owner) && other.handlers & (1 << handler) != 0
            };
            let share = config.lanes.div_ceil(state.sessions.iter().filter(live).count().max(1));
            let asked = state.sessions.iter().filter(live).any(|other| other.wants && other.owner != owner);
            let claimed = me.mask[handler].count_ones() as usize;
            let leaving = me.leaving[handler].count_ones() as usize;
            free || known != mine[handler] || (asked && claimed > share) || (claimed + leaving < share) != me.wants
        })
}

/// The lanes that are leaving, and of which nothing is in hand.
fn idle_lanes(config: &Config, state: &State, worker: usize) -> Lanes {
    let mut idle = state.workers[worker].leaving;
    if !config.lacks(Mutant::HandBackBusy) {
        for (handler, lanes) in idle.iter_mut().enumerate().take(config.handlers) {
            *lanes &= !state.busy_lanes(config, worker, handler);
        }
    }
    idle
}

/// Not while the session's row may list what is not in hand.
fn may_hand_back(config: &Config, state: &State, worker: usize) -> bool {
    !state.workers[worker].dirty || config.lacks(Mutant::HandBackDirty)
}

/// Takes in the answer of `shares`, and decides what follows.
pub(crate) fn seen(config: &Config, state: &mut State, worker: usize, answer: &Answer) {
    let Answer::Seen { mine, free, workers, wanting, unwanted } = answer else { return };
    let reads = !config.lacks(Mutant::NoReread) && (state.workers[worker].unsure || !config.lacks(Mutant::RereadOnce));
    state.workers[worker].unsure = false;
    let (mut missing, mut hungry) = ([0; H], false);
    for handler in bits(state.workers[worker].handlers) {
        let count = usize::from(workers[handler].max(1));
        let share =
            if config.lacks(Mutant::ShareRoundedDown) { config.lanes / count } else { config.lanes.div_ceil(count) };
        if reads {
            settle_masks(config, state, worker, handler, mine[handler]);
        }
        let me = &state.workers[worker];
        let (claimed, leaving) = (me.mask[handler].count_ones() as usize, me.leaving[handler].count_ones() as usize);
        let (free, bit) = (usize::from(free[handler]), 1 << handler);
        let unwanted = unwanted & bit != 0;
        if claimed > share && wanting & bit != 0 && free == 0 {
            choose_leaving(config, state, worker, handler, claimed - share);
        } else if free > 0 && leaving == 0 && (claimed < share || unwanted) {
            let most = if unwanted { config.lanes } else { share };
            missing[handler] = u8::try_from(most - claimed.min(most)).unwrap_or(u8::MAX);
            hungry |= claimed + free < share;
        } else {
            hungry |= claimed + leaving < share;
        }
    }
    if config.lacks(Mutant::TakeUnknown) {
        for (handler, count) in missing.iter_mut().enumerate().take(config.handlers) {
            *count = if state.workers[worker].handlers & (1 << handler) == 0 { u8::MAX } else { *count };
        }
    }
    state.workers[worker].plan = Some(Plan { hand_back: true, missing, hungry });
    go_on(config, state, worker);
}

/// What was read, less the lanes that are leaving.
fn settle_masks(config: &Config, state: &mut State, worker: usize, handler: usize, mine: u8) {
    let me = &mut state.workers[worker];
    me.leaving[handler] &= mine;
    let kept = if config.lacks(Mutant::MaskKept) { 0 } else { me.leaving[handler] };
    me.mask[handler] = mine & !kept;
}

/// Marks lanes as leaving, those first of which nothing is in hand, from the end.
fn choose_leaving(config: &Config, state: &mut State, worker: usize, handler: usize, surplus: usize) {
    let busy = state.busy_lanes(config, worker, handler);
    let mut lanes: Vec<usize> = bits(state.workers[worker].mask[handler]).collect();
    lanes.reverse();
    lanes.sort_by_key(|lane| busy & (1 << lane) != 0);
    for lane in lanes.into_iter().take(surplus) {
        leave_lane(config, state, worker, handler, lane);
    }
}

/// From here on nothing is claimed from the lane.
pub(crate) fn leave_lane(config: &Config, state: &mut State, worker: usize, handler: usize, lane: usize) {
    let me = &mut state.workers[worker];
    me.leaving[handler] |= 1 << lane;
    if !config.lacks(Mutant::MaskKept) {
        me.mask[handler] &= !(1 << lane);
    }
}

/// Sends the next part of a look.
pub(crate) fn go_on(config: &Config, state: &mut State, worker: usize) {
    let idle = idle_lanes(config, state, worker);
    let may_hand_back = may_hand_back(config, state, worker);
    let me = &mut state.workers[worker];
    let Some(plan) = &mut me.plan else { return };
    let (turn, no) = (me.turn + 1, me.no);
    let stmt = if plan.hand_back && may_hand_back && idle != [0; H] {
        plan.hand_back = false;
        Stmt::HandBack { turn, lanes: idle, no }
    } else if plan.missing != [0; H] {
        let counts = std::mem::take(&mut plan.missing);
        Stmt::Take { turn, counts, no }
    } else if plan.hungry != me.wants {
        Stmt::TouchSession { turn, wants: plan.hungry, reread: false }
    } else {
        me.plan = None;
        return;
    };
    let unsure = matches!(stmt, Stmt::HandBack { .. } | Stmt::Take { .. });
    send(state, worker, stmt);
    // Until the answer is there.
    state.workers[worker].unsure |= unsure;
}

/// Takes in the answer of a statement about lanes.
pub(crate) fn answered(config: &Config, state: &mut State, worker: usize, out: &Out) {
    let me = &mut state.workers[worker];
    match (&out.stmt, &out.answer) {
        (Stmt::TouchSession { reread: true, .. }, _) => {
            send(state, worker, Stmt::Shares);
            return;
        }
        (Stmt::TouchSession { wants, .. }, _) => {
            me.wants = *wants;
            me.plan = None;
            return;
        }
        (Stmt::HandBack { lanes, .. }, Some(Answer::Ok)) => {
            me.unsure = false;
            for (handler, set) in lanes.iter().enumerate() {
                me.leaving[handler] &= !set;
            }
        }
        (Stmt::Take { .. }, Some(Answer::Taken { changed, mine })) => {
            me.unsure = false;
            for handler in bits(*changed & me.handlers) {
                me.mask[handler] = mine[handler] & !me.leaving[handler];
            }
        }
        _ => {
            lose_session(config, state, worker);
            return;
        }
    }
    go_on(config, state, worker);
}
