//! The state: the rows of the database, and what each worker's session and dispatcher remember.
//!
//! Some fields are ghosts: no statement reads them, they only tell whether a rule holds. Numbers of statements are kept as
//! ranks, so that a state does not grow with time.

use crate::config::{Budget, Config, bits};
use crate::statement::{Answer, Stmt};

/// Most deliveries.
pub(crate) const D: usize = 4;
/// Most workers.
pub(crate) const W: usize = 3;
/// Most handlers.
pub(crate) const H: usize = 3;
/// Most lanes of a handler.
pub(crate) const L: usize = 2;

/// Lanes of each handler, as bits.
pub(crate) type Lanes = [u8; H];
/// A session's owner: worker and incarnation. 0 is nobody.
pub(crate) type Owner = u8;

/// Where a delivery's row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Row {
    /// Its publisher has not committed.
    Hidden,
    /// `available_at <= now`.
    Due,
    /// Rescheduled, not due yet.
    Later,
    Dead,
    /// Deleted: completed.
    Done,
}

/// A handler's transaction that has deleted the row and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tx {
    None,
    Open,
    /// Its commit may have been sent: the server ends it in either way.
    Loose,
}

/// Ghost: what became of the attempt under the current claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ran {
    Not,
    Started,
    Succeeded,
}

/// A row of deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Delivery {
    pub(crate) row: Row,
    pub(crate) claims: u8,
    pub(crate) tx: Tx,
    /// Ghost: the session under whose claim it stands.
    pub(crate) holder: Owner,
    pub(crate) ran: Ran,
}

impl Delivery {
    /// Whether the row is there and not dead.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.row, Row::Due | Row::Later)
    }
}

/// Who has a session's row locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lock {
    None,
    Worker(u8),
    /// A transaction whose client is gone.
    Loose,
}

/// A row of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Session {
    pub(crate) owner: Owner,
    pub(crate) no: u8,
    pub(crate) turn: u8,
    pub(crate) expired: bool,
    pub(crate) lock: Lock,
    pub(crate) handlers: u8,
    pub(crate) wants: bool,
    pub(crate) in_flight: u8,
    /// What a takeover has read of it; only a wrong takeover reads it before its lock.
    pub(crate) read: u8,
    /// The deliveries whose `available_at` is not behind `scan_to`.
    pub(crate) reach: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    Up,
    Paused,
    Down,
    /// Left in order.
    Gone,
}

/// What a worker's session and dispatcher hold of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Hold {
    Free,
    /// Handed out, not started.
    Queued,
    Running,
    /// Runs, though the local deadline has passed.
    Zombie,
    /// Its completion is written in its handler's open transaction.
    InTx,
    /// The answer to its commit was lost.
    Doubt,
    /// Succeeded; the completion is to be sent.
    Completed,
    /// Its handler's transaction has committed; the session is to forget it.
    Committed,
    /// Failed, to be rescheduled.
    Failed,
    /// Failed for good, to be buried.
    Fatal,
    /// Not started, to be released.
    Unstarted,
}

impl Hold {
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Fatal | Self::Unstarted)
    }
}

/// What a look at the lanes has decided and not yet sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plan {
    pub(crate) hand_back: bool,
    pub(crate) missing: [u8; H],
    pub(crate) hungry: bool,
}

/// A statement on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Out {
    pub(crate) stmt: Stmt,
    pub(crate) answer: Option<Answer>,
}

/// A process: its session and its dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) life: Life,
    pub(crate) handlers: u8,
    pub(crate) incarnation: u8,
    pub(crate) open: bool,
    pub(crate) no: u8,
    pub(crate) turn: u8,
    /// The local deadline has not passed.
    pub(crate) valid: bool,
    pub(crate) leaving_work: bool,
    pub(crate) mask: Lanes,
    pub(crate) leaving: Lanes,
    pub(crate) unsure: bool,
    pub(crate) dirty: bool,
    pub(crate) wants: bool,
    pub(crate) doubted: bool,
    pub(crate) held: [Hold; D],
    pub(crate) claims: [u8; D],
    /// Completions and settlements that were sent and not answered.
    pub(crate) repeated: u8,
    /// Deliveries that still run for a session that was lost.
    pub(crate) orphans: u8,
    /// Handlers whose lanes were seen free, and that nobody has changed since.
    pub(crate) seen_free: u8,
    pub(crate) plan: Option<Plan>,
    pub(crate) out: Option<Out>,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) deliveries: [Delivery; D],
    /// Rows of handlers: a number for each lane.
    pub(crate) owners: [[u8; L]; H],
    pub(crate) sessions: Vec<Session>,
    pub(crate) workers: [Worker; W],
    /// Statements whose client has given them up, and that may still run.
    pub(crate) late: Vec<(Owner, Stmt)>,
    pub(crate) budget: Budget,
    /// Ghost: deliveries whose handler's effect has committed, that were charged for another's crash, that were requeued.
    pub(crate) effects: u8,
    pub(crate) innocent: u8,
    pub(crate) requeued: u8,
}

pub(crate) fn owner_of(worker: usize, incarnation: u8) -> Owner {
    u8::try_from(worker * 32 + 1).unwrap_or(0) + incarnation
}

pub(crate) fn worker_of(owner: Owner) -> usize {
    usize::from((owner - 1) / 32)
}

impl Worker {
    fn absent() -> Self {
        Self {
            life: Life::Gone,
            handlers: 0,
            incarnation: 0,
            open: false,
            no: 0,
            turn: 0,
            valid: false,
            leaving_work: false,
            mask: [0; H],
            leaving: [0; H],
            unsure: false,
            dirty: false,
            wants: false,
            doubted: false,
            held: [Hold::Free; D],
            claims: [0; D],
            repeated: 0,
            orphans: 0,
            seen_free: 0,
            plan: None,
            out: None,
        }
    }

    /// A worker that has only just begun; a session that it may have had is forgotten.
    pub(crate) fn fresh(handlers: u8, incarnation: u8) -> Self {
        Self { life: Life::Up, handlers, incarnation, ..Self::absent() }
    }

    /// The deliveries of which it holds what `wanted` says.
    pub(crate) fn holds(&self, wanted: impl Fn(Hold) -> bool) -> u8 {
        self.held.iter().enumerate().filter(|(_, hold)| wanted(**hold)).fold(0, |set, (place, _)| set | 1 << place)
    }

    pub(crate) fn in_hand(&self) -> u8 {
        self.holds(|hold| hold != Hold::Free)
    }

    pub(crate) fn failures(&self) -> u8 {
        self.holds(Hold::is_failure)
    }

    /// Whether it can send a statement.
    pub(crate) fn is_idle(&self) -> bool {
        self.life == Life::Up && self.out.is_none() && self.plan.is_none()
    }
}

impl State {
    pub(crate) fn start(config: &Config) -> Self {
        let nothing = Delivery { row: Row::Done, claims: 0, tx: Tx::None, holder: 0, ran: Ran::Not };
        let mut state = Self {
            deliveries: [nothing; D],
            owners: [[0; L]; H],
            sessions: Vec::new(),
            workers: [Worker::absent(); W],
            late: Vec::new(),
            budget: config.budget,
            effects: 0,
            innocent: 0,
            requeued: 0,
        };
        for (place, delivery) in config.deliveries.iter().enumerate() {
            state.deliveries[place].row = match delivery {
                _ if delivery.late => Row::Hidden,
                _ if delivery.dead => Row::Dead,
                _ if delivery.delayed => Row::Later,
                _ => Row::Due,
            };
        }
        for (place, worker) in config.workers.iter().enumerate() {
            state.workers[place] = Worker::fresh(worker.handlers, 0);
            if worker.running {
                state.open(place);
            }
        }
        state.share_out(config);
        state
    }

    fn open(&mut self, place: usize) {
        let worker = &mut self.workers[place];
        worker.no = u8::try_from(self.sessions.len() + 1).unwrap_or(u8::MAX);
        (worker.open, worker.valid) = (true, true);
        self.sessions.push(Session {
            owner: owner_of(place, 0),
            no: worker.no,
            turn: 0,
            expired: false,
            lock: Lock::None,
            handlers: worker.handlers,
            wants: false,
            in_flight: 0,
            read: 0,
            reach: 0,
        });
    }

    /// The lanes go round among those who can run their handler.
    fn share_out(&mut self, config: &Config) {
        for handler in 0..config.handlers {
            let able =
                |place: &usize| config.workers[*place].handlers & (1 << handler) != 0 && self.workers[*place].open;
            let able: Vec<usize> = (0..config.workers.len()).filter(able).collect();
            for lane in 0..config.lanes {
                let Some(&place) = able.get(lane % able.len().max(1)) else { continue };
                self.owners[handler][lane] = self.workers[place].no;
                self.workers[place].mask[handler] |= 1 << lane;
            }
        }
    }

    pub(crate) fn owner(&self, worker: usize) -> Owner {
        owner_of(worker, self.workers[worker].incarnation)
    }

    pub(crate) fn row(&self, owner: Owner) -> Option<&Session> {
        self.sessions.iter().find(|row| row.owner == owner)
    }

    pub(crate) fn row_mut(&mut self, owner: Owner) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|row| row.owner == owner)
    }

    /// The lanes of each handler that have this number.
    pub(crate) fn lanes_of(&self, no: u8) -> Lanes {
        self.owners
            .map(|lanes| lanes.iter().enumerate().filter(|(_, n)| **n == no).fold(0, |set, (lane, _)| set | 1 << lane))
    }

    /// Whether the process of this session has it still.
    pub(crate) fn is_kept(&self, owner: Owner) -> bool {
        let worker = worker_of(owner);
        matches!(self.workers[worker].life, Life::Up | Life::Paused) && self.owner(worker) == owner
    }

    /// All work has ended, or nobody is left who can do what remains.
    pub(crate) fn has_ended(&self, config: &Config) -> bool {
        config.deliveries.iter().enumerate().all(|(place, delivery)| {
            matches!(self.deliveries[place].row, Row::Done | Row::Dead)
                || !self.has_worker_for(config, delivery.handler)
        })
    }

    fn has_worker_for(&self, config: &Config, handler: usize) -> bool {
        config.workers.iter().enumerate().any(|(place, planned)| {
            let worker = &self.workers[place];
            let able = match worker.life {
                Life::Up | Life::Paused if !worker.leaving_work => worker.handlers,
                Life::Up | Life::Paused | Life::Down => planned.later,
                Life::Gone => 0,
            };
            able & (1 << handler) != 0
        })
    }

    /// Handlers whose row changed: what was seen of it is old.
    pub(crate) fn epoch_counts(&mut self, handler: usize) {
        for worker in &mut self.workers {
            worker.seen_free &= !(1 << handler);
        }
    }

    /// The lanes in which a worker holds something of a handler.
    pub(crate) fn busy_lanes(&self, config: &Config, worker: usize, handler: usize) -> u8 {
        let of = bits(self.workers[worker].in_hand()).map(|place| config.deliveries[place]);
        of.filter(|delivery| delivery.handler == handler).fold(0, |set, delivery| set | 1 << delivery.lane)
    }
}
