//! The rules that must hold, by the words in which a fault is reported.

use crate::config::{Config, bits};
use crate::state::{H, Hold, L, Life, Row, State};

pub(crate) const CLAIM_ENDED: &str = "a completion of a claim that has ended changes nothing";
pub(crate) const CLAIM_OF_OTHER: &str = "a settlement of a claim that has ended changes nothing";
pub(crate) const STALE_START: &str = "nothing starts under a claim that has ended";
pub(crate) const EFFECT_TWICE: &str = "a handler's own transaction commits at most once";
pub(crate) const NO_EFFECT: &str =
    "what a handler completes in its own transaction is not completed without its effect";
pub(crate) const CHARGED_AFTER: &str = "a takeover charges nothing whose attempt had ended";
pub(crate) const CHARGED_FOLLOWER: &str = "a takeover charges no follower that never started";
pub(crate) const CHARGED_TWICE: &str = "nobody is charged twice for another";
pub(crate) const NOT_FENCED: &str = "a takeover fences everything that ran";
pub(crate) const NOT_CHARGED: &str = "a takeover charges what ran, or what stood before it";
const OVERLAP: &str = "no two runs of a key, or of a delivery, by live workers within their deadline";
const OWN_RETRY: &str = "in one process no run meets its own retry, or another of its key";
const OUT_OF_ORDER: &str = "deliveries of a key start in their order";
const STARTED_DONE: &str = "what has completed does not start";
const NUMBER_TWICE: &str = "a number has one row";
const ORPHAN: &str = "a lane belongs to nobody, or to a session that has a row and lists the handler";

/// What holds of every state.
pub(crate) fn check(config: &Config, state: &State) -> Result<(), &'static str> {
    for (place, row) in state.sessions.iter().enumerate() {
        if state.sessions[place + 1..].iter().any(|other| other.no == row.no) {
            return Err(NUMBER_TWICE);
        }
    }
    for handler in 0..config.handlers.min(H) {
        for lane in 0..config.lanes.min(L) {
            let no = state.owners[handler][lane];
            let has_row = state.sessions.iter().any(|row| row.no == no && row.handlers & (1 << handler) != 0);
            if no != 0 && !has_row {
                return Err(ORPHAN);
            }
        }
    }
    Ok(())
}

/// What holds when a worker starts a delivery.
pub(crate) fn check_start(config: &Config, state: &State, worker: usize, place: usize) -> Result<(), &'static str> {
    let chain = config.chain(place);
    for (other, theirs) in state.workers.iter().enumerate() {
        let runs = |hold: Hold| matches!(hold, Hold::Running | Hold::InTx);
        if other == worker {
            let mine = theirs.holds(|hold| runs(hold) || hold == Hold::Zombie) | theirs.orphans;
            if mine & chain != 0 {
                return Err(OWN_RETRY);
            }
        } else if theirs.life == Life::Up && theirs.valid && theirs.holds(runs) & chain != 0 {
            return Err(OVERLAP);
        }
    }
    let me = &state.workers[worker];
    let delivery = &state.deliveries[place];
    match delivery.row {
        Row::Done => return Err(STARTED_DONE),
        Row::Hidden | Row::Dead => return Err(STALE_START),
        Row::Due | Row::Later => {}
    }
    if me.valid && delivery.claims != me.claims[place] {
        return Err(STALE_START);
    }
    let ended_here =
        |before: usize| config.is_chained(before) && matches!(me.held[before], Hold::Completed | Hold::Committed);
    let waits =
        |before: &usize| state.deliveries[*before].is_live() && !(replayed(config, *before) && ended_here(*before));
    if bits(config.before(place) & !state.requeued).any(|before| waits(&before)) {
        return Err(OUT_OF_ORDER);
    }
    Ok(())
}

fn replayed(config: &Config, place: usize) -> bool {
    config.replay & (1 << config.deliveries[place].handler) != 0
}
