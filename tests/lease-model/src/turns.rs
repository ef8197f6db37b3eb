//! A worker's turns and settlements: what it sends, and what it makes of the answers.

use crate::config::{Config, bits};
use crate::database::picks;
use crate::mutant::Mutant;
use crate::state::{H, Hold, State, Tx};
use crate::statement::{Answer, Stmt, Turn};
use crate::work::{lose_session, send};

/// The turn that a worker would send; `sweep` takes every key from its beginning.
pub(crate) fn compose(config: &Config, state: &State, worker: usize, sweep: bool) -> Turn {
    let me = &state.workers[worker];
    let done = me.holds(|hold| hold == Hold::Completed);
    let committed = me.holds(|hold| hold == Hold::Committed);
    let claiming = !me.leaving_work && me.failures() == 0 && !me.doubted;
    // A stop ends runs early: what is behind the last completion goes back unseen.
    let behind = |place: usize| config.chain(place) & me.holds(|hold| hold == Hold::Queued);
    let strict = bits(done).filter(|&place| me.leaving_work && !config.is_chained(place));
    let dropped = strict.fold(0, |set, place| set | behind(place));
    let ended = done | dropped;
    let running = me.in_hand() & !ended & !committed;
    let busy = bits(running).fold(0, |set, place| set | config.chain(place));
    let goes_on = if sweep {
        0
    } else {
        bits(done).filter(|&place| config.chain(place) & running == 0).fold(0, |s, p| s | 1 << p)
    };
    Turn {
        turn: me.turn + 1,
        no: me.no,
        running,
        done,
        claims: me.claims,
        dropped,
        record: !me.valid || (me.dirty && !config.lacks(Mutant::DirtyForgotten)) || dropped != 0,
        renew: !me.valid,
        lanes: if claiming { me.mask } else { [0; H] },
        busy,
        goes_on: if claiming { goes_on } else { 0 },
        read: None,
    }
}

/// Whether a turn is due, and whether one that takes keys from their beginning is another one.
pub(crate) fn is_due(config: &Config, state: &State, worker: usize) -> bool {
    let me = &state.workers[worker];
    if !me.open || me.unsure {
        return false;
    }
    let done = me.holds(|hold| hold == Hold::Completed);
    if me.failures() != 0 {
        // Completions go out first, but not while a settlement may still be applied.
        let unanswered = me.failures() & me.repeated != 0 && !config.lacks(Mutant::TurnBeforeSettled);
        return me.doubted || (done != 0 && !unanswered);
    }
    let turn = compose(config, state, worker, false);
    let committed = me.holds(|hold| hold == Hold::Committed);
    done | committed != 0 || me.doubted || me.dirty || !me.valid || picks(config, state, &turn) != 0
}

pub(crate) fn send_turn(config: &Config, state: &mut State, worker: usize, sweep: bool) {
    let turn = compose(config, state, worker, sweep);
    let me = &mut state.workers[worker];
    for place in bits(me.holds(|hold| hold == Hold::Committed)) {
        forget(me, place);
    }
    // Until the answer is there, the row may list others than those in hand.
    me.dirty = true;
    send(state, worker, Stmt::Turn(turn));
}

fn forget(me: &mut crate::state::Worker, place: usize) {
    (me.held[place], me.claims[place]) = (Hold::Free, 0);
    me.repeated &= !(1 << place);
}

pub(crate) fn turned(config: &Config, state: &mut State, worker: usize, turn: &Turn, answer: &Answer) {
    let Answer::Turned { done, gone, picks, claims } = answer else { return lose_session(config, state, worker) };
    let me = &mut state.workers[worker];
    (me.dirty, me.doubted) = (false, false);
    if turn.renew {
        me.valid = true;
    }
    let mut picks = *picks;
    for place in bits(turn.done) {
        let missed = (done | gone) & (1 << place) == 0;
        forget(me, place);
        if missed {
            // Its key is not free: what was handed out behind it goes back unseen.
            me.dirty |= picks & config.chain(place) != 0;
            picks &= !config.chain(place);
        }
    }
    for place in bits(turn.dropped) {
        forget(me, place);
    }
    for place in bits(picks) {
        (me.held[place], me.claims[place]) = (Hold::Queued, claims[place]);
    }
}

/// Whether failures are to be settled: those that were sent already, or all when no completion waits.
pub(crate) fn must_settle(state: &State, worker: usize) -> bool {
    let me = &state.workers[worker];
    let done = me.holds(|hold| hold == Hold::Completed);
    me.open && me.failures() != 0 && !me.doubted && (done == 0 || me.failures() & me.repeated != 0)
}

pub(crate) fn send_settlement(config: &Config, state: &mut State, worker: usize) {
    let me = &mut state.workers[worker];
    let waits = me.holds(|hold| hold == Hold::Completed) != 0;
    let ending = if waits { me.failures() & me.repeated } else { me.failures() };
    let (rescheduled, buried) = (me.holds(|hold| hold == Hold::Failed), me.holds(|hold| hold == Hold::Fatal));
    let released = me.holds(|hold| hold == Hold::Unstarted);
    let stmt = Stmt::Settle {
        turn: me.turn + 1,
        running: me.in_hand() & !ending,
        rescheduled: rescheduled & ending,
        buried: buried & ending,
        released: released & ending,
        claims: me.claims,
    };
    me.dirty = !config.lacks(Mutant::DirtyForgotten);
    send(state, worker, stmt);
}

pub(crate) fn settled(config: &Config, state: &mut State, worker: usize, stmt: &Stmt, answer: &Answer) {
    let (Answer::Settled { applied }, Stmt::Settle { rescheduled, buried, released, .. }) = (answer, stmt) else {
        return lose_session(config, state, worker);
    };
    let me = &mut state.workers[worker];
    me.dirty = false;
    for place in bits(rescheduled | buried | released) {
        // The lost statement may have done it: the next turn tells.
        me.doubted |= me.repeated & !applied & (1 << place) != 0;
        forget(me, place);
    }
}

/// The answer to the last statement is lost.
pub(crate) fn lost_answer(config: &Config, state: &mut State, worker: usize, stmt: &Stmt) {
    let me = &mut state.workers[worker];
    me.plan = None;
    match stmt {
        // The next try has another owner.
        Stmt::InsertSession { .. } => me.incarnation += u8::from(!config.lacks(Mutant::SameOwner)),
        Stmt::Shares | Stmt::Take { .. } | Stmt::HandBack { .. } | Stmt::TouchSession { .. } => me.unsure = true,
        Stmt::Turn(turn) => me.repeated |= turn.done,
        Stmt::Settle { rescheduled, buried, released, .. } => me.repeated |= rescheduled | buried | released,
        Stmt::Close { .. } => leave(state, worker),
    }
}

/// The process has ended in order; what its handlers' transactions may still do, the server decides.
pub(crate) fn leave(state: &mut State, worker: usize) {
    for place in bits(state.workers[worker].in_hand()) {
        if state.deliveries[place].tx == Tx::Open && state.workers[worker].held[place] == Hold::InTx {
            state.deliveries[place].tx = Tx::Loose;
        }
    }
    let me = &state.workers[worker];
    let (handlers, incarnation) = (me.handlers, me.incarnation);
    state.workers[worker] = crate::state::Worker::fresh(handlers, incarnation);
    state.workers[worker].life = crate::state::Life::Down;
}
