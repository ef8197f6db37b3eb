//! What is searched: the deliveries, the workers, and how much may go wrong.

use crate::mutant::Mutant;
use crate::state::{D, H, L, W};

/// A delivery; its place in the list is its sequence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Its handler.
    pub handler: usize,
    /// The lane of its key.
    pub lane: usize,
    /// Its key, if it has one.
    pub key: Option<u8>,
    /// Its publisher has not committed yet.
    pub late: bool,
    /// It begins as a dead letter.
    pub dead: bool,
    /// It is not due yet.
    pub delayed: bool,
}

/// A worker: the handlers it can run, as bits, now and after a restart.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    /// Now.
    pub handlers: u8,
    /// After a crash; 0 for a worker that does not come back.
    pub later: u8,
    /// Whether it has a session at the start.
    pub running: bool,
}

/// How often each thing may go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Processes that die.
    pub crash: u8,
    /// Processes that stand still for longer than their local deadline, or longer than their lease.
    pub pause: u8,
    /// Answers that are lost.
    pub lost: u8,
    /// Attempts that fail.
    pub fail: u8,
    /// Lanes that a worker gives away although nobody asked for them.
    pub drain: u8,
    /// Dead letters that are set going again.
    pub requeue: u8,
    /// Workers that leave in order.
    pub leave: u8,
}

/// A configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its name.
    pub name: String,
    /// Handlers.
    pub handlers: usize,
    /// Lanes of each handler.
    pub lanes: usize,
    /// Deliveries.
    pub deliveries: Vec<Delivery>,
    /// Workers.
    pub workers: Vec<Worker>,
    /// Numbers of sessions that there are.
    pub numbers: u8,
    /// What may go wrong.
    pub budget: Budget,
    /// Deliveries in a run, at most.
    pub run: u32,
    /// Handlers that complete in their own transaction, as bits.
    pub transactional: u8,
    /// Handlers whose runs go on before completions are durable, as bits.
    pub replay: u8,
    /// Whether a failed attempt may be the last.
    pub bury: bool,
    /// Whether a turn reads at one moment and writes at a later one.
    pub apart: bool,
    /// The rules that are left out.
    pub mutants: Vec<Mutant>,
}

impl Config {
    /// Workers with these handlers, each with a session and its share of the lanes, one delivery after the other in lane 0.
    #[must_use]
    pub fn new(name: &str, sets: &[u8]) -> Self {
        let workers: Vec<Worker> = sets.iter().map(|&set| Worker { handlers: set, later: 0, running: true }).collect();
        let all = sets.iter().fold(0, |all, set| all | set);
        Self {
            name: name.to_owned(),
            handlers: (u8::BITS - all.leading_zeros()).max(1) as usize,
            lanes: 1,
            deliveries: Vec::new(),
            numbers: u8::try_from(workers.len()).unwrap_or(u8::MAX),
            workers,
            budget: Budget::default(),
            run: 1,
            transactional: 0,
            replay: 0,
            bury: false,
            apart: false,
            mutants: Vec::new(),
        }
    }

    /// Also this budget: a letter each time, `c` crash, `p` pause, `l` lost answer, `f` failure, `h` hand back, `q` requeue,
    /// `x` leave, `r` every worker restarts with its own handlers.
    #[must_use]
    pub fn with(mut self, letters: &str) -> Self {
        for letter in letters.chars() {
            match letter {
                'c' => self.budget.crash += 1,
                'p' => self.budget.pause += 1,
                'l' => self.budget.lost += 1,
                'f' => self.budget.fail += 1,
                'h' => self.budget.drain += 1,
                'q' => self.budget.requeue += 1,
                'x' => self.budget.leave += 1,
                'r' => {
                    for worker in &mut self.workers {
                        worker.later = worker.handlers;
                    }
                }
                _ => {}
            }
        }
        self
    }

    /// Also an unkeyed delivery.
    #[must_use]
    pub fn unkeyed(self, handler: usize, lane: usize) -> Self {
        self.delivery(Delivery { handler, lane, ..Delivery::default() })
    }

    /// Also a delivery of a key, in lane 0.
    #[must_use]
    pub fn keyed(self, handler: usize, key: u8) -> Self {
        self.delivery(Delivery { handler, key: Some(key), ..Delivery::default() })
    }

    /// Also a delivery of a key, in another lane.
    #[must_use]
    pub fn keyed_in(self, handler: usize, key: u8, lane: usize) -> Self {
        self.delivery(Delivery { handler, lane, key: Some(key), ..Delivery::default() })
    }

    /// Also this delivery.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.lanes = self.lanes.max(delivery.lane + 1);
        self.handlers = self.handlers.max(delivery.handler + 1);
        self.deliveries.push(delivery);
        self
    }

    /// The last delivery commits late.
    #[must_use]
    pub fn late(mut self) -> Self {
        if let Some(last) = self.deliveries.last_mut() {
            last.late = true;
        }
        self
    }

    /// The last delivery begins as a dead letter.
    #[must_use]
    pub fn dead(mut self) -> Self {
        if let Some(last) = self.deliveries.last_mut() {
            last.dead = true;
        }
        self
    }

    /// The last delivery becomes due later.
    #[must_use]
    pub fn delayed(mut self) -> Self {
        if let Some(last) = self.deliveries.last_mut() {
            last.delayed = true;
        }
        self
    }

    /// With this many lanes.
    #[must_use]
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }

    /// With runs of this length.
    #[must_use]
    pub fn runs(mut self, length: u32) -> Self {
        self.run = length;
        self
    }

    /// Handlers of these bits complete in their own transactions.
    #[must_use]
    pub fn transactional(mut self, handlers: u8) -> Self {
        self.transactional = handlers;
        self
    }

    /// Handlers of these bits go on before completions are durable.
    #[must_use]
    pub fn replay(mut self, handlers: u8) -> Self {
        self.replay = handlers;
        self
    }

    /// Failures may be final.
    #[must_use]
    pub fn bury(mut self) -> Self {
        self.bury = true;
        self
    }

    /// A turn reads and writes at different moments.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.apart = true;
        self
    }

    /// There are this many numbers.
    #[must_use]
    pub fn numbers(mut self, numbers: u8) -> Self {
        self.numbers = numbers;
        self
    }

    /// The worker begins without a session.
    #[must_use]
    pub fn absent(mut self, worker: usize) -> Self {
        self.workers[worker].running = false;
        self
    }

    /// The worker comes back with these handlers after a crash.
    #[must_use]
    pub fn restart(mut self, worker: usize, handlers: u8) -> Self {
        self.workers[worker].later = handlers;
        self
    }

    /// Under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Without this rule.
    #[must_use]
    pub fn without(mut self, mutant: Mutant) -> Self {
        self.mutants.push(mutant);
        self
    }

    /// Whether it fits into the model.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.deliveries.len() <= D && self.workers.len() <= W && self.handlers <= H && self.lanes <= L
    }

    pub(crate) fn lacks(&self, mutant: Mutant) -> bool {
        self.mutants.contains(&mutant)
    }

    /// The deliveries of the same handler and key, this one too.
    pub(crate) fn chain(&self, delivery: usize) -> u8 {
        let me = &self.deliveries[delivery];
        let same = |other: &Delivery| me.key.is_some() && other.key == me.key && other.handler == me.handler;
        let chain = self.deliveries.iter().enumerate().filter(|(_, other)| same(other)).map(|(place, _)| 1 << place);
        chain.fold(1 << delivery, |all, bit| all | bit)
    }

    /// The deliveries of the same chain that come before.
    pub(crate) fn before(&self, delivery: usize) -> u8 {
        self.chain(delivery) & ((1 << delivery) - 1)
    }

    pub(crate) fn is_transactional(&self, delivery: usize) -> bool {
        self.transactional & (1 << self.deliveries[delivery].handler) != 0
    }

    /// Whether a run of this delivery goes on before the turn that completes the one before.
    pub(crate) fn is_chained(&self, delivery: usize) -> bool {
        (self.transactional | self.replay) & (1 << self.deliveries[delivery].handler) != 0
    }
}

/// The places of the bits that are set.
pub(crate) fn bits(set: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |place| set & (1 << place) != 0)
}
