//! A worker between two statements: starting, ending and cancelling deliveries, and handlers' own transactions.

use crate::config::{Config, bits};
use crate::database::{commit, complete_in};
use crate::invariants::check_start;
use crate::mutant::Mutant;
use crate::state::{D, Hold, Out, Ran, Row, State, Tx, Worker};
use crate::statement::Stmt;
use crate::step::Effect;

/// Puts a statement on the session's line.
pub(crate) fn send(state: &mut State, worker: usize, stmt: Stmt) {
    let me = &mut state.workers[worker];
    me.turn = me.turn.max(stmt.turn());
    me.out = Some(Out { stmt, answer: None });
}

/// The session is no more: its runs are orphans, the next session begins with nothing.
pub(crate) fn lose_session(config: &Config, state: &mut State, worker: usize) {
    let me = state.workers[worker];
    let runs = me.holds(|hold| matches!(hold, Hold::Running | Hold::Zombie | Hold::InTx | Hold::Doubt));
    for place in bits(me.holds(|hold| hold == Hold::InTx)) {
        state.deliveries[place].tx = Tx::Loose;
    }
    let next = me.incarnation + u8::from(!config.lacks(Mutant::SameOwner));
    state.workers[worker] = Worker {
        orphans: me.orphans | runs,
        leaving_work: me.leaving_work,
        turn: if config.lacks(Mutant::SameOwner) { me.turn } else { 0 },
        ..Worker::fresh(me.handlers, next)
    };
}

/// Whether the delivery is next in its run.
fn is_next(config: &Config, state: &State, worker: usize, place: usize) -> bool {
    let me = &state.workers[worker];
    let goes_on = |before: usize| match me.held[before] {
        Hold::Free => true,
        Hold::Completed | Hold::Committed => config.is_chained(place) || config.lacks(Mutant::StrictGoesOn),
        Hold::Failed | Hold::Fatal | Hold::Unstarted => config.lacks(Mutant::FollowersKept),
        Hold::Queued | Hold::Running | Hold::Zombie | Hold::InTx | Hold::Doubt => false,
    };
    let blocked = me.orphans & config.chain(place) != 0 && !config.lacks(Mutant::OrphansForgotten);
    let in_turn = bits(config.before(place)).all(goes_on) || config.lacks(Mutant::BusyKeys);
    me.held[place] == Hold::Queued && !blocked && in_turn
}

/// A slot starts a delivery: within the local deadline, else it goes back as it was.
pub(crate) fn start(config: &Config, state: &mut State, worker: usize, place: usize) -> Effect {
    if !is_next(config, state, worker, place) {
        return None;
    }
    if !state.workers[worker].valid && !config.lacks(Mutant::NoLocalDeadline) {
        state.workers[worker].held[place] = Hold::Unstarted;
        give_back_followers(config, state, worker, place);
        return Some(Ok(()));
    }
    if let Err(rule) = check_start(config, state, worker, place) {
        return Some(Err(rule));
    }
    state.workers[worker].held[place] = Hold::Running;
    mark(state, worker, place, Ran::Started);
    Some(Ok(()))
}

fn mark(state: &mut State, worker: usize, place: usize, ran: Ran) {
    let owner = state.owner(worker);
    let delivery = &mut state.deliveries[place];
    if delivery.holder == owner {
        delivery.ran = ran;
    }
}

fn give_back_followers(config: &Config, state: &mut State, worker: usize, place: usize) {
    if config.lacks(Mutant::FollowersKept) {
        return;
    }
    for follower in bits(config.chain(place)) {
        if state.workers[worker].held[follower] == Hold::Queued {
            state.workers[worker].held[follower] = Hold::Unstarted;
        }
    }
}

/// The handler succeeds: its completion waits for a turn, or is written in its transaction.
pub(crate) fn finish(config: &Config, state: &mut State, worker: usize, place: usize) -> Effect {
    if !matches!(state.workers[worker].held[place], Hold::Running | Hold::Zombie) {
        return None;
    }
    if !config.is_transactional(place) {
        state.workers[worker].held[place] = Hold::Completed;
        mark(state, worker, place, Ran::Succeeded);
        return Some(Ok(()));
    }
    if complete_in(config, state, place, state.workers[worker].claims[place])? {
        state.workers[worker].held[place] = Hold::InTx;
    } else {
        fail(config, state, worker, place, Hold::Failed);
    }
    Some(Ok(()))
}

/// The attempt fails; what is behind it in its run goes back.
pub(crate) fn fail(config: &Config, state: &mut State, worker: usize, place: usize, how: Hold) {
    state.workers[worker].held[place] = how;
    give_back_followers(config, state, worker, place);
}

/// The handler's transaction commits, and the answer comes.
pub(crate) fn commit_answered(state: &mut State, worker: usize, place: usize) -> Effect {
    if state.workers[worker].held[place] != Hold::InTx {
        return None;
    }
    state.workers[worker].held[place] = Hold::Committed;
    Some(holder_commits(state, worker, place))
}

fn holder_commits(state: &mut State, worker: usize, place: usize) -> Result<(), &'static str> {
    if state.deliveries[place].holder != state.owner(worker) {
        return Err(crate::invariants::CLAIM_ENDED);
    }
    commit(state, place)
}

/// The answer to the commit is lost: the server ends the transaction in either way.
pub(crate) fn commit_in_doubt(config: &Config, state: &mut State, worker: usize, place: usize) -> Effect {
    if state.workers[worker].held[place] != Hold::InTx {
        return None;
    }
    state.workers[worker].held[place] = Hold::Doubt;
    state.deliveries[place].tx = Tx::Loose;
    if config.lacks(Mutant::DoubtIsSuccess) {
        state.workers[worker].held[place] = Hold::Completed;
        state.workers[worker].repeated |= 1 << place;
    }
    Some(Ok(()))
}

/// Past the local deadline it gives up looking: the settlement waits for the transaction in its stead.
pub(crate) fn give_up_looking(config: &Config, state: &mut State, worker: usize, place: usize) -> Effect {
    if state.workers[worker].valid {
        return None;
    }
    fail(config, state, worker, place, Hold::Failed);
    Some(Ok(()))
}

/// `inspect` waits for the transaction, then tells what became of it.
pub(crate) fn inspect(config: &Config, state: &mut State, worker: usize, place: usize) -> Effect {
    if state.workers[worker].held[place] != Hold::Doubt || state.deliveries[place].tx != Tx::None {
        return None;
    }
    if state.deliveries[place].row == Row::Done {
        state.workers[worker].held[place] = Hold::Completed;
        state.workers[worker].repeated |= 1 << place;
    } else {
        fail(config, state, worker, place, Hold::Failed);
    }
    Some(Ok(()))
}

/// The local deadline has passed: what runs is cancelled, and may still come to its end.
pub(crate) fn lapse(state: &mut State, worker: usize) {
    let me = &mut state.workers[worker];
    me.valid = false;
    for place in 0..D {
        if me.held[place] == Hold::Running {
            me.held[place] = Hold::Zombie;
        }
    }
}

/// Everything is in the store's hands: the process may leave.
pub(crate) fn is_done_here(config: &Config, state: &State, worker: usize) -> bool {
    let me = &state.workers[worker];
    if config.lacks(Mutant::LeaveBusy) {
        return me.leaving_work;
    }
    me.leaving_work
        && me.orphans == 0
        && me.holds(|hold| !matches!(hold, Hold::Free | Hold::Committed)) == 0
        && !me.doubted
}
