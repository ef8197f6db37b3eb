//! The ledger: which runs this dispatcher holds, and how many of each handler.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::bus::{HandlerSpec, Handlers};
use crate::event::{EventId, OrderingKey};
use crate::handler_id::HandlerId;
use crate::store::{Claimed, HandlerSlots, Lease};

/// A run that a slot works on, or whose next delivery waits for the completion of the one before.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) spec: Arc<HandlerSpec>,
    /// Index of the handler in the ledger.
    pub(super) handler: usize,
    /// What is still to be run after what the slot has.
    pub(super) rest: VecDeque<Claimed>,
    /// What no other run may touch while this one lives: its key, or its event.
    pub(super) subject: Subject,
    /// The session that claimed it was lost; its results count for nothing, but it still runs.
    pub(super) orphaned: bool,
    /// When a slot first got it, by the monotonic clock.
    pub(super) began: Duration,
    pub(super) reported_stuck: bool,
}

/// What a run occupies: nothing else of the same subject may run in this process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    Key(HandlerId, OrderingKey),
    Event(HandlerId, EventId),
}

impl Subject {
    pub(super) fn of(lease: &Lease) -> Self {
        match &lease.key {
            Some(key) => Self::Key(lease.handler.clone(), key.clone()),
            None => Self::Event(lease.handler.clone(), lease.event_id.clone()),
        }
    }
}

#[derive(Debug)]
struct HandlerCount {
    spec: Arc<HandlerSpec>,
    running: usize,
    /// Runs that end with the next turn.
    ending: usize,
    /// Its last claim got less than it asked for: nothing more of it was due.
    ran_dry: bool,
    asked: usize,
    got: usize,
}

/// Everything in flight.
#[derive(Debug)]
pub(super) struct Ledger {
    runs: Vec<Option<ActiveRun>>,
    vacant: Vec<usize>,
    active: usize,
    handlers: Vec<HandlerCount>,
    index: HashMap<HandlerId, usize>,
    orphans: usize,
    /// The handlers of runs that end with the next turn, each once a run.
    ending: Vec<usize>,
}

impl Ledger {
    pub(super) fn new(handlers: &Handlers) -> Self {
        let counts: Vec<HandlerCount> = handlers
            .by_id
            .values()
            .map(|spec| HandlerCount { spec: spec.clone(), running: 0, ending: 0, ran_dry: false, asked: 0, got: 0 })
            .collect();
        let index = counts.iter().enumerate().map(|(i, count)| (count.spec.id.clone(), i)).collect();
        Self {
            runs: Vec::new(),
            vacant: Vec::new(),
            active: 0,
            handlers: counts,
            index,
            orphans: 0,
            ending: Vec::new(),
        }
    }

    pub(super) fn active(&self) -> usize {
        self.active
    }

    pub(super) fn spec(&self, handler: &HandlerId) -> Option<(usize, Arc<HandlerSpec>)> {
        let &index = self.index.get(handler)?;
        Some((index, self.handlers[index].spec.clone()))
    }

    pub(super) fn add(&mut self, run: ActiveRun) -> usize {
        self.active += 1;
        self.handlers[run.handler].running += 1;
        if let Some(place) = self.vacant.pop() {
            self.runs[place] = Some(run);
            return place;
        }
        self.runs.push(Some(run));
        self.runs.len() - 1
    }

    pub(super) fn get_mut(&mut self, run: usize) -> Option<&mut ActiveRun> {
        self.runs.get_mut(run)?.as_mut()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ActiveRun> {
        self.runs.iter_mut().flatten()
    }

    pub(super) fn remove(&mut self, run: usize) -> Option<ActiveRun> {
        let removed = self.runs.get_mut(run)?.take()?;
        self.vacant.push(run);
        self.active -= 1;
        self.handlers[removed.handler].running -= 1;
        if removed.orphaned {
            self.orphans -= 1;
        }
        Some(removed)
    }

    /// Whether the handler of a run can run nothing else until this one ends.
    pub(super) fn fills_its_handler(&self, run: usize) -> bool {
        self.runs.get(run).and_then(Option::as_ref).is_some_and(|active| {
            let count = &self.handlers[active.handler];
            count.spec.concurrency.is_some_and(|most| count.running >= most)
        })
    }

    /// Marks everything as left behind by a lost session.
    pub(super) fn orphan_all(&mut self) {
        for run in self.runs.iter_mut().flatten() {
            run.orphaned = true;
            run.rest.clear();
        }
        self.orphans = self.active;
    }

    /// Whether a run of a lost session still executes for this subject. Its retry waits for it.
    pub(super) fn blocks(&self, subject: &Subject) -> bool {
        self.orphans > 0 && self.runs.iter().flatten().any(|run| run.orphaned && run.subject == *subject)
    }

    /// Forgets which runs end with the next turn.
    pub(super) fn nothing_ends(&mut self) {
        for handler in self.ending.drain(..) {
            self.handlers[handler].ending = 0;
        }
    }

    /// A run ends with the next turn.
    pub(super) fn ends(&mut self, run: usize) {
        if let Some(run) = self.runs.get(run).and_then(Option::as_ref) {
            self.handlers[run.handler].ending += 1;
            self.ending.push(run.handler);
        }
    }

    /// How many runs end with the next turn.
    pub(super) fn ending(&self) -> usize {
        self.ending.len()
    }

    /// The handlers with free slots and how many each may take, at most `limit`.
    pub(super) fn claimable(&mut self, limit: usize, into: &mut Vec<HandlerSlots>) {
        into.clear();
        for count in &mut self.handlers {
            let running = count.running.saturating_sub(count.ending);
            let free = count.spec.concurrency.map_or(limit, |most| most.saturating_sub(running).min(limit));
            count.asked = free;
            count.got = 0;
            if free > 0 {
                into.push(HandlerSlots::new(count.spec.id.clone(), free));
            }
        }
    }

    pub(super) fn got(&mut self, handler: usize) {
        self.handlers[handler].got += 1;
    }

    /// A claim ended; `more` when it was cut short by its own limit.
    pub(super) fn claim_ended(&mut self, more: bool) {
        for count in &mut self.handlers {
            if count.asked > 0 {
                count.ran_dry = !more && count.got < count.asked;
            }
        }
    }

    /// Whether a settled delivery of this handler may make another one claimable.
    pub(super) fn settles_usefully(&self, handler: usize, keyed: bool) -> bool {
        keyed || !self.handlers[handler].ran_dry
    }

    pub(super) fn running_deliveries(&self) -> usize {
        self.runs.iter().flatten().map(|run| 1 + run.rest.len()).sum()
    }
}
