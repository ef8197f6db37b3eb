//! The world of a simulation: its time, its chance, its story, its store, and the model that judges it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use relaybus::{Clock, MemoryStore, VirtualClock};
use tokio::sync::Notify;

use super::Mutation;
use super::model::{Model, Violation, at};
use super::plan::Plan;
use super::process::Process;

/// Everything that the processes of one simulation share.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) mutation: Mutation,
    pub(crate) clock: VirtualClock,
    pub(crate) store: MemoryStore,
    rng: Mutex<Rng>,
    story: Mutex<Vec<String>>,
    model: Mutex<Model>,
    processes: Mutex<BTreeMap<String, Arc<Process>>>,
    healed: AtomicBool,
    /// Publishers that have not written all of their events.
    pub(crate) publishing: AtomicU64,
    pub(crate) failed: Notify,
}

/// A story with more lines than this has no end.
const LONGEST_STORY: usize = 500_000;

impl World {
    pub(crate) fn new(plan: Plan, mutation: Mutation, clock: VirtualClock) -> Self {
        let mut model = Model::default();
        model.handlers = plan.handlers.iter().map(|handler| (handler.id.clone(), handler.clone())).collect();
        model.concurrency = plan.concurrency;
        Self {
            store: MemoryStore::new().completion_history(plan.history).allow_in_production(),
            rng: Mutex::new(Rng::with_seed(plan.seed)),
            story: Mutex::default(),
            model: Mutex::new(model),
            processes: Mutex::default(),
            healed: AtomicBool::new(false),
            publishing: AtomicU64::new(0),
            failed: Notify::new(),
            plan,
            mutation,
            clock,
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Writes a line of the story.
    pub(crate) fn say(&self, who: &str, what: fmt::Arguments<'_>) {
        let mut story = lock(&self.story);
        story.push(format!("{} {who:<6} {what}", at(self.now())));
        assert!(story.len() < LONGEST_STORY, "seed {} never ends: {:#?}", self.plan.seed, &story[story.len() - 50..]);
    }

    pub(crate) fn story(&self) -> Vec<String> {
        lock(&self.story).clone()
    }

    pub(crate) fn chance<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut lock(&self.rng))
    }

    /// Whether something that happens `parts` times in `whole` happens now.
    pub(crate) fn happens(&self, parts: u32, whole: u32) -> bool {
        parts > 0 && self.chance(|rng| rng.u32(..whole)) < parts
    }

    /// Looks at the model or feeds it. Never call the store inside.
    pub(crate) fn model<T>(&self, look: impl FnOnce(&mut Model) -> T) -> T {
        let mut model = lock(&self.model);
        let fine = model.violation.is_none();
        let answer = look(&mut model);
        if fine && let Some(violation) = model.violation.clone() {
            drop(model);
            self.say("!!", format_args!("VIOLATED `{}`: {}", violation.rule, violation.text));
            self.failed.notify_one();
        }
        answer
    }

    pub(crate) fn violate(&self, rule: &'static str, text: String, about: Vec<String>) {
        self.model(|model| {
            model.violation.get_or_insert(Violation { rule, text, about });
        });
    }

    pub(crate) fn violation(&self) -> Option<Violation> {
        lock(&self.model).violation.clone()
    }

    pub(crate) fn heal(&self) {
        self.healed.store(true, Ordering::SeqCst);
        self.say("--", format_args!("healed: no more faults"));
    }

    pub(crate) fn is_healed(&self) -> bool {
        self.healed.load(Ordering::SeqCst)
    }

    pub(crate) fn add_process(&self, process: &Arc<Process>) {
        lock(&self.processes).insert(process.name.clone(), process.clone());
    }

    pub(crate) fn processes(&self) -> Vec<Arc<Process>> {
        lock(&self.processes).values().cloned().collect()
    }

    /// Whether a process is, or was a moment ago, in a pause.
    pub(crate) fn is_stunned(&self, process: &str) -> bool {
        let processes = lock(&self.processes);
        processes.get(process).is_some_and(|process| process.gate.is_stunned(self.now()))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
