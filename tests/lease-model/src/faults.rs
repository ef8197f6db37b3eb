//! What goes wrong around the workers: deaths, pauses, lost answers, late statements, and the passing of time.

use crate::config::{Config, bits};
use crate::database::{commit, execute, may_expire};
use crate::lanes::leave_lane;
use crate::state::{Hold, Life, Lock, Owner, Row, State, Tx, Worker, worker_of};
use crate::statement::{Answer, Stmt};
use crate::step::Effect;
use crate::takeover::{roll_back, victim};
use crate::turns::lost_answer;
use crate::work::lapse;

/// A process dies; its statement may still run, its handlers' transactions may still commit.
pub(crate) fn crash(state: &mut State, worker: usize) -> Effect {
    if state.budget.crash == 0 || !matches!(state.workers[worker].life, Life::Up | Life::Paused) {
        return None;
    }
    state.budget.crash -= 1;
    if let Some(victim) = victim(state, worker)
        && let Some(row) = state.row_mut(victim)
    {
        row.lock = Lock::Loose;
    }
    let me = state.workers[worker];
    leave_running(state, worker, me.out.and_then(|out| out.answer.is_none().then_some(out.stmt)));
    for place in bits(me.holds(|hold| hold == Hold::InTx)) {
        state.deliveries[place].tx = Tx::Loose;
    }
    state.workers[worker] = Worker { life: Life::Down, ..Worker::fresh(me.handlers, me.incarnation) };
    Some(Ok(()))
}

/// A statement that nobody waits for may still run.
fn leave_running(state: &mut State, worker: usize, stmt: Option<Stmt>) {
    if let Some(stmt) = stmt.filter(|stmt| *stmt != Stmt::Shares) {
        let owner = state.owner(worker);
        state.late.push((owner, stmt));
    }
}

/// It starts again, with a new owner.
pub(crate) fn restart(config: &Config, state: &mut State, worker: usize) -> Effect {
    let handlers = config.workers.get(worker)?.later;
    let me = &mut state.workers[worker];
    if me.life != Life::Down || handlers == 0 {
        return None;
    }
    *me = Worker::fresh(handlers, me.incarnation + 1);
    Some(Ok(()))
}

pub(crate) fn pause(state: &mut State, worker: usize) -> Effect {
    if state.budget.pause == 0 || state.workers[worker].life != Life::Up {
        return None;
    }
    state.budget.pause -= 1;
    state.workers[worker].life = Life::Paused;
    Some(Ok(()))
}

/// It goes on, and notices that its local deadline has passed. A renewal that was sent before does not help.
pub(crate) fn resume(state: &mut State, worker: usize) -> Effect {
    let me = &mut state.workers[worker];
    if me.life != Life::Paused {
        return None;
    }
    me.life = Life::Up;
    forget_renewal(me.out.as_mut().map(|out| &mut out.stmt));
    lapse(state, worker);
    Some(Ok(()))
}

fn forget_renewal(stmt: Option<&mut Stmt>) {
    match stmt {
        Some(Stmt::Turn(turn)) => turn.renew = false,
        Some(Stmt::InsertSession { fresh, .. }) => *fresh = false,
        _ => {}
    }
}

/// The lease of a session ends, of a process that is gone, or that stands still.
pub(crate) fn expire(state: &mut State, owner: Owner) -> Effect {
    let row = state.row(owner).copied()?;
    if !may_expire(state, &row) {
        return None;
    }
    state.row_mut(owner)?.expired = true;
    if state.is_kept(owner) {
        forget_renewal(state.workers[worker_of(owner)].out.as_mut().map(|out| &mut out.stmt));
    }
    for (_, stmt) in state.late.iter_mut().filter(|(who, _)| *who == owner) {
        forget_renewal(Some(stmt));
    }
    Some(Ok(()))
}

/// The answer does not come; the statement has run, will run, or never does.
pub(crate) fn lose(config: &Config, state: &mut State, worker: usize) -> Effect {
    let out = state.workers[worker].out?;
    if state.budget.lost == 0 || state.workers[worker].life != Life::Up {
        return None;
    }
    state.budget.lost -= 1;
    leave_running(state, worker, out.answer.is_none().then_some(out.stmt));
    state.workers[worker].out = None;
    lost_answer(config, state, worker, &out.stmt);
    Some(Ok(()))
}

/// A statement that nobody waits for runs.
pub(crate) fn run_late(config: &Config, state: &mut State, place: usize) -> Effect {
    let (owner, stmt) = state.late.remove(place);
    match execute(config, state, owner, &stmt)? {
        Ok(Answer::NoNumber | _) => Some(Ok(())),
        Err(rule) => Some(Err(rule)),
    }
}

/// The server ends a handler's transaction whose client is gone.
pub(crate) fn end_loose(state: &mut State, place: usize, commits: bool) -> Effect {
    if state.deliveries[place].tx != Tx::Loose {
        return None;
    }
    if commits {
        return Some(commit(state, place));
    }
    state.deliveries[place].tx = Tx::None;
    Some(Ok(()))
}

/// The server ends a takeover whose client is gone without its commit.
pub(crate) fn end_takeover(state: &mut State, victim: Owner) -> Effect {
    if state.row(victim)?.lock != Lock::Loose {
        return None;
    }
    roll_back(state, victim);
    Some(Ok(()))
}

/// A delivery appears, or becomes due.
pub(crate) fn becomes_due(config: &Config, state: &mut State, place: usize, from: Row) -> Effect {
    // Publishers of one key commit in the order of their sequences.
    let waits = bits(config.before(place)).any(|before| state.deliveries[before].row == Row::Hidden);
    if state.deliveries[place].row != from || (from == Row::Hidden && waits) {
        return None;
    }
    state.deliveries[place].row = Row::Due;
    Some(Ok(()))
}

/// `requeue`: a dead letter is to run again.
pub(crate) fn requeue(state: &mut State, place: usize) -> Effect {
    if state.budget.requeue == 0 || state.deliveries[place].row != Row::Dead {
        return None;
    }
    state.budget.requeue -= 1;
    let delivery = &mut state.deliveries[place];
    (delivery.row, delivery.claims) = (Row::Due, delivery.claims + 1);
    state.requeued |= 1 << place;
    for row in &mut state.sessions {
        row.reach &= !(1 << place);
    }
    Some(Ok(()))
}

/// A worker gives a lane away of its own.
pub(crate) fn drain(config: &Config, state: &mut State, worker: usize, handler: usize, lane: usize) -> Effect {
    let me = &state.workers[worker];
    if state.budget.drain == 0 || !me.is_idle() || !me.open || me.mask[handler] & (1 << lane) == 0 {
        return None;
    }
    state.budget.drain -= 1;
    leave_lane(config, state, worker, handler, lane);
    Some(Ok(()))
}

/// A worker is told to leave.
pub(crate) fn stop(state: &mut State, worker: usize) -> Effect {
    let me = &mut state.workers[worker];
    if state.budget.leave == 0 || me.life != Life::Up || me.leaving_work || !me.open {
        return None;
    }
    state.budget.leave -= 1;
    me.leaving_work = true;
    Some(Ok(()))
}
