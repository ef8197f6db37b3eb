//! All steps from a state.

use std::fmt;

use crate::config::Config;
use crate::database::{execute, may_expire, picks};
use crate::faults::{
    becomes_due, crash, drain, end_loose, end_takeover, expire, lose, pause, requeue, restart, resume, run_late, stop,
};
use crate::invariants::check;
use crate::lanes::{answered, is_worth_a_look, look, seen};
use crate::mutant::Mutant;
use crate::state::{D, H, Hold, L, Life, Lock, Row, State, Tx, W, worker_of};
use crate::statement::{Answer, Stmt};
use crate::takeover::{free, lock_expired, victim};
use crate::turns::{compose, is_due, must_settle, send_settlement, send_turn, settled, turned};
use crate::work::{
    commit_answered, commit_in_doubt, fail, finish, give_up_looking, inspect, is_done_here, lose_session, start,
};

/// `None` when the step is not possible now; an error is a broken rule.
pub(crate) type Effect = Option<Result<(), &'static str>>;

/// What a step was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    who: usize,
    what: &'static str,
    about: &'static str,
    delivery: Option<usize>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.who {
            W => write!(f, "    ")?,
            who => write!(f, "W{} ", who + 1)?,
        }
        f.write_str(self.what)?;
        if !self.about.is_empty() {
            write!(f, " {}", self.about)?;
        }
        self.delivery.map_or(Ok(()), |delivery| write!(f, " d{}", delivery + 1))
    }
}

/// A step and the state behind it.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    pub(crate) step: Step,
    pub(crate) state: State,
    /// Whether what is to end may rely on it.
    pub(crate) helpful: bool,
    pub(crate) broken: Option<&'static str>,
}

struct Steps<'a> {
    config: &'a Config,
    from: &'a State,
    found: &'a mut Vec<Next>,
}

/// The rest of the world, as one that does steps.
const WORLD: usize = W;

impl Steps<'_> {
    fn add(
        &mut self,
        helpful: bool,
        who: usize,
        (what, about, delivery): (&'static str, &'static str, Option<usize>),
        act: impl FnOnce(&mut State) -> Effect,
    ) {
        let mut state = self.from.clone();
        let Some(effect) = act(&mut state) else { return };
        state.settle_down(self.config);
        let broken = effect.and_then(|()| check(self.config, &state)).err();
        self.found.push(Next { step: Step { who, what, about, delivery }, state, helpful, broken });
    }

    fn line(&mut self, worker: usize) {
        let (config, me) = (self.config, &self.from.workers[worker]);
        let owner = self.from.owner(worker);
        let Some(out) = me.out else { return };
        let name = out.stmt.name();
        if out.answer.is_some() {
            if me.life == Life::Up {
                self.add(true, worker, ("hears of", name, None), |state| Some(hear(config, state, worker)));
            }
        } else if me.life != Life::Down {
            self.run(worker, owner, &out.stmt, name);
        }
        if self.from.budget.lost > 0 {
            self.add(false, worker, ("never hears of", name, None), |state| lose(config, state, worker));
        }
    }

    fn run(&mut self, worker: usize, owner: u8, stmt: &Stmt, name: &'static str) {
        let config = self.config;
        if let Stmt::Turn(turn) = stmt
            && config.apart
            && turn.read.is_none()
            && turn.lanes != [0; H]
        {
            self.add(true, worker, ("reads in", name, None), |state| {
                let read = picks(config, state, turn);
                if let Some(Stmt::Turn(turn)) = state.workers[worker].out.as_mut().map(|out| &mut out.stmt) {
                    turn.read = Some(read);
                }
                Some(Ok(()))
            });
            return;
        }
        self.add(true, worker, ("runs", name, None), |state| {
            let answer = match execute(config, state, owner, stmt)? {
                Ok(answer) => answer,
                Err(rule) => return Some(Err(rule)),
            };
            if let Some(out) = &mut state.workers[worker].out {
                out.answer = Some(answer);
            }
            Some(Ok(()))
        });
    }

    fn sending(&mut self, worker: usize) {
        let (config, from) = (self.config, self.from);
        let me = &from.workers[worker];
        if let Some(victim) = victim(from, worker) {
            if me.life == Life::Up {
                let known = me.handlers;
                self.add(true, worker, ("takes over", "", None), |state| Some(free(config, state, victim, known)));
            }
            return;
        }
        if !me.is_idle() {
            return;
        }
        let can_take_over = me.open || !config.lacks(Mutant::TakeoverNeedsSession);
        let expired = from.sessions.iter().any(|row| row.expired && row.lock == Lock::None);
        if can_take_over && !me.unsure && expired {
            self.add(true, worker, ("runs", "lock_expired", None), |state| {
                lock_expired(config, state, worker).then_some(Ok(()))
            });
        }
        if !me.open {
            if !me.leaving_work {
                let handlers = me.handlers;
                self.add(true, worker, ("sends", "insert_session", None), |state| {
                    crate::work::send(state, worker, Stmt::InsertSession { handlers, fresh: true });
                    Some(Ok(()))
                });
            }
            return;
        }
        if is_worth_a_look(config, from, worker) {
            self.add(true, worker, ("looks at", "lanes", None), |state| {
                look(config, state, worker);
                Some(Ok(()))
            });
        }
        self.session(worker);
    }

    fn session(&mut self, worker: usize) {
        let (config, from) = (self.config, self.from);
        if must_settle(from, worker) {
            self.add(true, worker, ("sends", "settle", None), |state| {
                send_settlement(config, state, worker);
                Some(Ok(()))
            });
        }
        if is_due(config, from, worker) {
            self.add(true, worker, ("sends", "turn", None), |state| {
                send_turn(config, state, worker, false);
                Some(Ok(()))
            });
            if compose(config, from, worker, false).goes_on != 0 {
                self.add(true, worker, ("sends", "turn of a sweep", None), |state| {
                    send_turn(config, state, worker, true);
                    Some(Ok(()))
                });
            }
        }
        if is_done_here(config, from, worker) {
            self.add(true, worker, ("sends", "close_session", None), |state| {
                let turn = state.workers[worker].turn + 1;
                crate::work::send(state, worker, Stmt::Close { turn });
                Some(Ok(()))
            });
        }
    }

    fn deliveries(&mut self, worker: usize) {
        let (config, from) = (self.config, self.from);
        let me = &from.workers[worker];
        if me.life != Life::Up {
            return;
        }
        for place in 0..config.deliveries.len() {
            let one = Some(place);
            if me.orphans & (1 << place) != 0 {
                self.add(true, worker, ("ends orphan", "", one), |state| {
                    state.workers[worker].orphans &= !(1 << place);
                    Some(Ok(()))
                });
            }
            match me.held[place] {
                Hold::Free | Hold::Completed | Hold::Committed | Hold::Failed | Hold::Fatal | Hold::Unstarted => {}
                Hold::Queued => {
                    self.add(true, worker, ("starts", "", one), |state| start(config, state, worker, place))
                }
                Hold::Running | Hold::Zombie => self.ends(worker, place),
                Hold::InTx => {
                    self.add(true, worker, ("commits", "", one), |state| commit_answered(state, worker, place));
                    self.add(false, worker, ("commits in doubt", "", one), |state| {
                        state.budget.lost = state.budget.lost.checked_sub(1)?;
                        commit_in_doubt(config, state, worker, place)
                    });
                }
                Hold::Doubt => {
                    self.add(true, worker, ("runs", "inspect", one), |state| inspect(config, state, worker, place));
                    self.add(false, worker, ("gives up", "inspect", one), |state| {
                        give_up_looking(config, state, worker, place)
                    });
                }
            }
        }
    }

    fn ends(&mut self, worker: usize, place: usize) {
        let (config, zombie) = (self.config, self.from.workers[worker].held[place] == Hold::Zombie);
        let name = if config.is_transactional(place) { "runs complete_in" } else { "succeeds" };
        let one = Some(place);
        self.add(true, worker, (name, "", one), |state| finish(config, state, worker, place));
        for (name, how) in [("fails", Hold::Failed), ("fails for good", Hold::Fatal)] {
            if how == Hold::Fatal && (!config.bury || zombie) {
                continue;
            }
            self.add(zombie, worker, (name, "", one), |state| {
                if !zombie {
                    state.budget.fail = state.budget.fail.checked_sub(1)?;
                }
                fail(config, state, worker, place, how);
                Some(Ok(()))
            });
        }
    }

    fn faults(&mut self, worker: usize) {
        let (config, from) = (self.config, self.from);
        let me = &from.workers[worker];
        let lives = matches!(me.life, Life::Up | Life::Paused);
        if from.budget.crash > 0 && lives {
            self.add(false, worker, ("dies", "", None), |state| crash(state, worker));
        }
        if me.life == Life::Down {
            self.add(true, worker, ("starts again", "", None), |state| restart(config, state, worker));
        }
        if from.budget.pause > 0 && me.life == Life::Up {
            self.add(false, worker, ("stands still", "", None), |state| pause(state, worker));
        }
        if me.life == Life::Paused {
            self.add(true, worker, ("goes on", "", None), |state| resume(state, worker));
        }
        if from.budget.leave > 0 {
            self.add(false, worker, ("is told to leave", "", None), |state| stop(state, worker));
        }
        if from.budget.drain == 0 {
            return;
        }
        for (handler, lane) in (0..config.handlers.min(H)).flat_map(|h| (0..config.lanes.min(L)).map(move |l| (h, l))) {
            self.add(false, worker, ("gives a lane away", "", None), |state| {
                drain(config, state, worker, handler, lane)
            });
        }
    }

    fn world(&mut self) {
        let (config, from) = (self.config, self.from);
        for row in &from.sessions {
            let owner = row.owner;
            let kept = from.is_kept(owner);
            if may_expire(from, row) {
                self.add(!kept, worker_of(owner), ("loses its lease", "", None), |state| expire(state, owner));
            }
            if row.lock == Lock::Loose {
                self.add(true, WORLD, ("a takeover ends without commit", "", None), |state| end_takeover(state, owner));
                self.add(true, WORLD, ("a takeover commits unheard", "", None), |state| {
                    Some(free(config, state, owner, 0))
                });
            }
        }
        for (place, (owner, stmt)) in from.late.iter().enumerate() {
            self.add(false, worker_of(*owner), ("late runs", stmt.name(), None), |state| {
                run_late(config, state, place)
            });
        }
        for place in 0..config.deliveries.len().min(D) {
            self.delivery(place);
        }
    }

    fn delivery(&mut self, place: usize) {
        let (config, one) = (self.config, Some(place));
        let delivery = &self.from.deliveries[place];
        if delivery.tx == Tx::Loose {
            self.add(true, WORLD, ("the server commits", "", one), |state| end_loose(state, place, true));
            self.add(true, WORLD, ("the server rolls back", "", one), |state| end_loose(state, place, false));
        }
        match delivery.row {
            Row::Hidden => self.add(true, WORLD, ("its publisher commits", "", one), |state| {
                becomes_due(config, state, place, Row::Hidden)
            }),
            Row::Later => {
                self.add(true, WORLD, ("becomes due", "", one), |state| becomes_due(config, state, place, Row::Later));
            }
            Row::Dead if self.from.budget.requeue > 0 => {
                self.add(false, WORLD, ("requeue", "", one), |state| requeue(state, place));
            }
            Row::Due | Row::Dead | Row::Done => {}
        }
    }
}

/// A worker takes in the answer to its statement.
fn hear(config: &Config, state: &mut State, worker: usize) -> Result<(), &'static str> {
    let Some(out) = state.workers[worker].out.take() else { return Ok(()) };
    let Some(answer) = out.answer else { return Ok(()) };
    match (&out.stmt, &answer) {
        (Stmt::InsertSession { fresh, .. }, Answer::Number(no)) => {
            let me = &mut state.workers[worker];
            (me.open, me.no, me.turn, me.valid) = (true, *no, 0, *fresh);
            look(config, state, worker);
        }
        (Stmt::InsertSession { .. }, _) => {}
        (Stmt::Shares, Answer::Seen { .. }) => seen(config, state, worker, &answer),
        (Stmt::Turn(turn), _) => turned(config, state, worker, turn, &answer),
        (Stmt::Settle { .. }, _) => settled(config, state, worker, &out.stmt, &answer),
        (Stmt::Close { .. }, _) => crate::turns::leave(state, worker),
        (Stmt::Shares, _) => lose_session(config, state, worker),
        (Stmt::TouchSession { .. } | Stmt::Take { .. } | Stmt::HandBack { .. }, _) => {
            answered(config, state, worker, &out)
        }
    }
    Ok(())
}

/// Every step that is possible.
pub(crate) fn successors(config: &Config, from: &State, found: &mut Vec<Next>) {
    let mut steps = Steps { config, from, found };
    for worker in 0..config.workers.len() {
        steps.line(worker);
        steps.sending(worker);
        steps.deliveries(worker);
        steps.faults(worker);
    }
    steps.world();
}
