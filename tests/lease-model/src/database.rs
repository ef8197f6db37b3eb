//! What the statements do to the rows, each at once.
//!
//! `None` is a statement that waits for a lock. A statement of a session finds its row by owner and number; without it, it
//! changes nothing, apart from completions, which are fenced by `claims` alone.

use crate::config::{Config, bits};
use crate::invariants::{CLAIM_ENDED, CLAIM_OF_OTHER, EFFECT_TWICE, NO_EFFECT};
use crate::mutant::Mutant;
use crate::state::{D, H, Life, Lock, Owner, Ran, Row, Session, State, Tx, worker_of};
use crate::statement::{Answer, Stmt, Turn};

/// `None` waits; an error is a broken rule.
pub(crate) type Outcome = Option<Result<Answer, &'static str>>;

/// Runs a statement of a session.
pub(crate) fn execute(config: &Config, state: &mut State, owner: Owner, stmt: &Stmt) -> Outcome {
    match stmt {
        Stmt::InsertSession { handlers, .. } => Some(Ok(insert_session(config, state, owner, *handlers))),
        Stmt::TouchSession { turn, wants, .. } => {
            let row = me(config, state, owner, 0, *turn)?;
            if let Some(row) = row {
                (row.turn, row.wants) = (*turn, *wants);
            }
            Some(Ok(Answer::Ok))
        }
        Stmt::Shares => Some(Ok(shares(config, state, owner))),
        Stmt::Take { turn, counts, no } => take(config, state, owner, *turn, counts, *no),
        Stmt::HandBack { turn, lanes, no } => hand_back(config, state, owner, *turn, lanes, *no),
        Stmt::Turn(turn) => execute_turn(config, state, owner, turn),
        Stmt::Settle { turn, running, rescheduled, buried, released, claims } => {
            let verdicts = [(*rescheduled, Row::Later), (*buried, Row::Dead), (*released, Row::Due)];
            settle(config, state, owner, *turn, *running, verdicts, claims)
        }
        Stmt::Close { turn } => close(config, state, owner, *turn),
    }
}

/// `WHERE owner = $1 AND turn < $n`, locked: nothing to wait for, and the row if it fits.
fn me<'s>(config: &Config, state: &'s mut State, owner: Owner, no: u8, turn: u8) -> Option<Option<&'s mut Session>> {
    let by_number = config.lacks(Mutant::SessionByNumber) && no > 0;
    let is_mine = |row: &Session| if by_number { row.no == no } else { row.owner == owner };
    let Some(row) = state.sessions.iter_mut().find(|row| is_mine(row)) else { return Some(None) };
    if row.lock != Lock::None && !config.lacks(Mutant::TakeoverReadsBeforeLock) {
        return None;
    }
    Some(Some(row).filter(|row| row.turn < turn || config.lacks(Mutant::NoTurnNumber)))
}

/// The least number without a row.
fn free_number(config: &Config, state: &State) -> Option<u8> {
    let used = |no: u8| {
        if config.lacks(Mutant::NumberByLanes) {
            state.owners.iter().flatten().any(|&owner| owner == no)
        } else {
            state.sessions.iter().any(|row| row.no == no)
        }
    };
    (1..=config.numbers).find(|&no| !used(no))
}

fn insert_session(config: &Config, state: &mut State, owner: Owner, handlers: u8) -> Answer {
    let Some(no) = free_number(config, state) else { return Answer::NoNumber };
    if state.row(owner).is_some() {
        return Answer::NoNumber;
    }
    state.sessions.push(Session {
        owner,
        no,
        turn: 0,
        expired: false,
        lock: Lock::None,
        handlers,
        wants: false,
        in_flight: 0,
        read: 0,
        reach: 0,
    });
    Answer::Number(no)
}

fn shares(config: &Config, state: &mut State, owner: Owner) -> Answer {
    let Some(row) = state.row(owner).copied() else { return Answer::SessionLost };
    let worker = worker_of(owner);
    let mine = state.lanes_of(row.no);
    let (mut free, mut workers, mut wanting, mut unwanted) = ([0; H], [0; H], 0, 0);
    for handler in bits(row.handlers) {
        let has = |other: &&Session| config.lacks(Mutant::ShareAmongAll) || other.handlers & (1 << handler) != 0;
        let counted = |other: &&Session| !other.expired || other.owner == owner;
        let count = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
        free[handler] = count(state.owners[handler][..config.lanes].iter().filter(|&&n| n == 0).count());
        workers[handler] = count(state.sessions.iter().filter(counted).filter(has).count());
        let wants = |other: &Session| {
            !other.expired && other.owner != owner && other.wants && other.handlers & (1 << handler) != 0
        };
        wanting |= u8::from(state.sessions.iter().any(wants)) << handler;
        let seen = &mut state.workers[worker].seen_free;
        unwanted |= *seen & (1 << handler);
        *seen = (*seen & !(1 << handler)) | u8::from(free[handler] > 0) << handler;
    }
    if config.lacks(Mutant::FreeLeftAlone) {
        unwanted = 0;
    }
    Answer::Seen { mine, free, workers, wanting, unwanted }
}

fn take(config: &Config, state: &mut State, owner: Owner, turn: u8, counts: &[u8; H], number: u8) -> Outcome {
    let no = if config.lacks(Mutant::LanesWithoutOwnRow) {
        number
    } else {
        let Some(row) = me(config, state, owner, number, turn)? else { return Some(Ok(Answer::SessionLost)) };
        row.turn = turn;
        row.no
    };
    let (mut changed, mut mine) = (0, [0; H]);
    for (handler, &count) in counts.iter().enumerate() {
        for lane in
            (0..config.lanes).filter(|&lane| state.owners[handler][lane] == 0).take(count.into()).collect::<Vec<_>>()
        {
            state.owners[handler][lane] = no;
            changed |= 1 << handler;
        }
    }
    for handler in bits(changed) {
        state.epoch_counts(handler);
        mine[handler] = state.lanes_of(no)[handler];
    }
    Some(Ok(Answer::Taken { changed, mine }))
}

fn hand_back(config: &Config, state: &mut State, owner: Owner, turn: u8, lanes: &[u8; H], number: u8) -> Outcome {
    let no = if config.lacks(Mutant::LanesWithoutOwnRow) {
        number
    } else {
        let Some(row) = me(config, state, owner, number, turn)? else { return Some(Ok(Answer::SessionLost)) };
        row.turn = turn;
        row.no
    };
    for (handler, &set) in lanes.iter().enumerate() {
        for lane in bits(set) {
            let byte = &mut state.owners[handler][lane];
            if *byte == no || config.lacks(Mutant::HandBackAnyByte) {
                *byte = 0;
                state.epoch_counts(handler);
            }
        }
    }
    Some(Ok(Answer::Ok))
}

/// What a turn would pick, by what is committed now.
pub(crate) fn picks(config: &Config, state: &State, turn: &Turn) -> u8 {
    let own = turn.running | turn.done;
    let mut picked = 0;
    for (place, delivery) in config.deliveries.iter().enumerate() {
        let chain = config.chain(place);
        let due = state.deliveries[place].row == Row::Due;
        if !due || turn.lanes[delivery.handler] & (1 << delivery.lane) == 0 {
            continue;
        }
        if delivery.key.is_none() {
            picked |= (1 << place) & !own;
        } else if turn.busy & chain == 0 || config.lacks(Mutant::BusyKeys) {
            picked |= run(config, state, chain, own, turn.goes_on & chain);
        }
    }
    picked
}

/// The run of a key: from the first one that is neither in hand nor dead on, behind what ended of it.
fn run(config: &Config, state: &State, chain: u8, own: u8, ended: u8) -> u8 {
    let mut run: u8 = 0;
    let behind = ended.checked_ilog2().map_or(0, |last| (2 << last) - 1);
    for place in bits(chain & !own & !behind) {
        let delivery = &state.deliveries[place];
        if !delivery.is_live() {
            continue;
        }
        let clean = delivery.claims == 0 && bits(run).all(|before| state.deliveries[before].claims == 0);
        let fits = run == 0 || clean || config.lacks(Mutant::RunsOfReturned);
        if delivery.row != Row::Due || !fits || run.count_ones() >= config.run {
            break;
        }
        run |= 1 << place;
    }
    run
}

fn execute_turn(config: &Config, state: &mut State, owner: Owner, turn: &Turn) -> Outcome {
    let fits = me(config, state, owner, turn.no, turn.turn)?.is_some();
    let picked = turn.read.unwrap_or_else(|| picks(config, state, turn));
    let done = match delete_done(config, state, owner, turn)? {
        Ok(done) => done,
        Err(rule) => return Some(Err(rule)),
    };
    let gone = bits(turn.done & !done).filter(|&place| state.deliveries[place].row == Row::Done);
    let gone = gone.fold(0, |set, place| set | 1 << place);
    let wanted = picked != 0 || turn.record;
    let recorded = fits && wanted;
    let reach = reachable(state);
    if recorded && let Some(row) = me(config, state, owner, turn.no, turn.turn)? {
        row.turn = turn.turn;
        row.in_flight = turn.running | picked;
        row.expired &= !turn.renew;
        row.reach |= reach;
    }
    let blind = config.lacks(Mutant::TurnWithoutRow) && state.is_kept(owner);
    if !recorded && !blind {
        let lost = state.row(owner).is_none() || wanted;
        let answer = Answer::Turned { done, gone, picks: 0, claims: [0; D] };
        return Some(Ok(if lost { Answer::SessionLost } else { answer }));
    }
    for place in bits(turn.dropped) {
        if state.deliveries[place].holder == owner {
            state.deliveries[place].holder = 0;
        }
    }
    for place in bits(picked) {
        (state.deliveries[place].holder, state.deliveries[place].ran) = (owner, Ran::Not);
    }
    Some(Ok(Answer::Turned { done, gone, picks: picked, claims: state.deliveries.map(|delivery| delivery.claims) }))
}

/// `done`: by place and claims, whoever sends it and however late.
fn delete_done(config: &Config, state: &mut State, owner: Owner, turn: &Turn) -> Option<Result<u8, &'static str>> {
    let mut done = 0;
    for place in bits(turn.done) {
        let delivery = &state.deliveries[place];
        let same = delivery.claims == turn.claims[place] || config.lacks(Mutant::CompletionWithoutClaims);
        if !delivery.is_live() || !same {
            continue;
        }
        if delivery.tx != Tx::None {
            return None;
        }
        if delivery.holder != owner {
            return Some(Err(CLAIM_ENDED));
        }
        if config.is_transactional(place) {
            return Some(Err(NO_EFFECT));
        }
        end_claim(state, place, Row::Done);
        done |= 1 << place;
    }
    Some(Ok(done))
}

/// The deliveries whose due time is not behind now.
fn reachable(state: &State) -> u8 {
    let due = state.deliveries.iter().enumerate().filter(|(_, delivery)| delivery.row != Row::Later);
    due.fold(0, |set, (place, _)| set | 1 << place)
}

/// The claim of a delivery ends, and its row stands like this.
pub(crate) fn end_claim(state: &mut State, place: usize, row: Row) {
    let delivery = &mut state.deliveries[place];
    (delivery.row, delivery.holder, delivery.ran, delivery.tx) = (row, 0, Ran::Not, Tx::None);
    if row == Row::Done {
        delivery.claims = 0;
        state.innocent &= !(1 << place);
    }
}

fn settle(
    config: &Config,
    state: &mut State,
    owner: Owner,
    turn: u8,
    running: u8,
    verdicts: [(u8, Row); 3],
    claims: &[u8; D],
) -> Outcome {
    let Some(row) = me(config, state, owner, 0, turn)? else { return Some(Ok(Answer::SessionLost)) };
    let old = row.in_flight;
    row.turn = turn;
    row.in_flight = if config.lacks(Mutant::SettleKeepsInFlight) { old } else { running };
    let mut applied = 0;
    for (set, verdict) in verdicts {
        for place in bits(set) {
            let delivery = &state.deliveries[place];
            if !delivery.is_live() || delivery.claims != claims[place] {
                continue;
            }
            if delivery.tx != Tx::None {
                return None;
            }
            if delivery.holder != owner {
                return Some(Err(CLAIM_OF_OTHER));
            }
            // A release leaves the due time as it is.
            let to = if verdict == Row::Due { delivery.row } else { verdict };
            state.deliveries[place].claims += 1;
            end_claim(state, place, to);
            applied |= 1 << place;
            if verdict == Row::Later {
                for row in &mut state.sessions {
                    row.reach &= !(1 << place);
                }
            }
        }
    }
    Some(Ok(Answer::Settled { applied }))
}

fn close(config: &Config, state: &mut State, owner: Owner, turn: u8) -> Outcome {
    let Some(row) = me(config, state, owner, 0, turn)?.copied() else { return Some(Ok(Answer::SessionLost)) };
    let lanes = state.lanes_of(row.no);
    let listed = |place: &usize| {
        let delivery = &config.deliveries[*place];
        state.deliveries[*place].is_live() && lanes[delivery.handler] & (1 << delivery.lane) != 0
    };
    let held: Vec<usize> = bits(row.in_flight & row.reach).filter(listed).collect();
    if held.iter().any(|&place| state.deliveries[place].tx != Tx::None) {
        return None;
    }
    for place in held {
        state.deliveries[place].claims += 1;
        let row = state.deliveries[place].row;
        end_claim(state, place, row);
    }
    if !config.lacks(Mutant::LeaveKeepsLanes) {
        free_lanes(state, row.no, u8::MAX);
    }
    state.sessions.retain(|other| other.owner != owner);
    Some(Ok(Answer::Ok))
}

/// `free_pairs`: every lane of this number, of these handlers, is nobody's.
pub(crate) fn free_lanes(state: &mut State, no: u8, handlers: u8) {
    for handler in bits(handlers).filter(|&handler| handler < H) {
        if state.owners[handler].contains(&no) {
            state.owners[handler] = state.owners[handler].map(|byte| if byte == no { 0 } else { byte });
            state.epoch_counts(handler);
        }
    }
}

/// The last statement of a handler's transaction deletes the row; `false` when it is not there under this claim.
pub(crate) fn complete_in(config: &Config, state: &mut State, place: usize, claims: u8) -> Option<bool> {
    let delivery = &mut state.deliveries[place];
    if delivery.tx != Tx::None {
        return None;
    }
    let same = delivery.claims == claims || config.lacks(Mutant::CompletionWithoutClaims);
    if delivery.is_live() && same {
        delivery.tx = Tx::Open;
        return Some(true);
    }
    Some(false)
}

/// A handler's transaction commits: its effect, and the completion.
pub(crate) fn commit(state: &mut State, place: usize) -> Result<(), &'static str> {
    if state.effects & (1 << place) != 0 {
        return Err(EFFECT_TWICE);
    }
    state.effects |= 1 << place;
    end_claim(state, place, Row::Done);
    Ok(())
}

/// Whether a session that is not there any more can be told from one that its process keeps.
pub(crate) fn may_expire(state: &State, row: &Session) -> bool {
    !row.expired && (!state.is_kept(row.owner) || state.workers[worker_of(row.owner)].life == Life::Paused)
}
