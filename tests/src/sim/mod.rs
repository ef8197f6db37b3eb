//! A deterministic simulation of the whole bus, by seed, under virtual time.
//!
//! Several processes share one store. Each is a [`RelayBus`](relaybus::RelayBus) with handlers and publishers; its store
//! calls fail, hang and lose their answers, it pauses, crashes and is started again. After a while everything heals, and
//! when nothing is left to do the guarantees are checked. Many are checked while it runs, as soon as they break.
//!
//! The same seed gives the same story, byte for byte.

mod fault;
mod finish;
mod gate;
mod handlers;
mod model;
mod observer;
mod plan;
mod process;
mod publisher;
mod running;
mod store;
mod transaction;
mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use relaybus::{Timestamp, VirtualClock};

use plan::{MishapKind, Plan};
use process::{Process, millis};
use world::World;

/// A fault that is planted between the bus and its store, to show that the simulation notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// None.
    None,
    /// Completions are answered and not written.
    DropCompletions,
    /// Failures are answered and not written.
    DropSettlements,
    /// The deliveries of a run are handed out as runs of their own.
    ClaimWithoutOrder,
    /// A handler's transaction commits without completing its delivery.
    UnfencedTransactions,
    /// Live sessions are taken over.
    StealEarly,
    /// Renewals are answered and not written.
    ForgetRenewals,
    /// Failed attempts are not charged.
    ChargeNothing,
    /// Publishing answers and stores nothing.
    DropPublishes,
    /// A rollback commits.
    RollbackCommits,
}

impl Mutation {
    /// Every planted fault.
    pub const ALL: [Self; 9] = [
        Self::DropCompletions,
        Self::DropSettlements,
        Self::ClaimWithoutOrder,
        Self::UnfencedTransactions,
        Self::StealEarly,
        Self::ForgetRenewals,
        Self::ChargeNothing,
        Self::DropPublishes,
        Self::RollbackCommits,
    ];
}

/// What a simulation came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The plan, as text.
    pub plan: String,
    /// What happened, a line a step.
    pub story: Vec<String>,
    /// The guarantee that did not hold: its name and what was seen.
    pub violation: Option<(String, String)>,
    /// Words whose lines of the story tell about the violation.
    about: Vec<String>,
    /// Handler runs.
    pub runs: usize,
}

impl Outcome {
    /// The story for a person: the plan, the steps that concern the violation (all of them when `whole`), the violation.
    #[must_use]
    pub fn tell(&self, whole: bool) -> String {
        let concerns = |line: &&String| {
            const ALWAYS: [&str; 9] =
                ["CRASH", "PAUSE", "RESUME", "VIOLATED", "session", "stop", "healed", "hangs", " starts with"];
            whole || ALWAYS.iter().any(|word| line.contains(word)) || self.about.iter().any(|word| line.contains(word))
        };
        let lines: Vec<&str> = self.story.iter().filter(concerns).map(String::as_str).collect();
        let (rule, text) = self.violation.clone().unwrap_or_default();
        format!("{}\n{}\n\nviolated: {rule}\n{text}\n", self.plan, lines.join("\n"))
    }
}

/// Runs the simulation of `seed`.
#[must_use]
pub fn simulate(seed: u64, mutation: Mutation) -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let plan = Plan::draw(seed);
    let text = plan.to_string();
    let world = runtime.block_on(async {
        let clock = VirtualClock::starting_at("2026-01-01T00:00:00Z".parse::<Timestamp>().expect("a time"));
        let world = Arc::new(World::new(plan, mutation, clock));
        tokio::select! {
            biased;
            () = world.failed.notified() => {}
            () = drive(&world) => {}
        }
        world
    });
    let story = world.story();
    for process in world.processes() {
        process.gate.kill();
        process.forget_bus();
    }
    drop(runtime);
    let violation = world.violation();
    Outcome {
        plan: text,
        runs: story.iter().filter(|line| line.contains(" RUN ")).count(),
        story,
        about: violation.as_ref().map(|violation| violation.about.clone()).unwrap_or_default(),
        violation: violation.map(|violation| (violation.rule.to_owned(), violation.text)),
    }
}

async fn drive(world: &Arc<World>) {
    let plan = &world.plan;
    world.publishing.store((plan.processes * plan.publishers) as u64, Ordering::SeqCst);
    let slots: Vec<_> = (0..plan.processes).map(|slot| tokio::spawn(live(world.clone(), slot))).collect();
    tokio::time::sleep(millis(plan.heal_at)).await;
    world.heal();
    finish::until_quiet(world).await;
    finish::check_idle(world).await;
    finish::check_prompt(world).await;
    for slot in slots {
        slot.abort();
    }
    for process in world.processes().iter().filter(|process| !process.gate.is_dead()) {
        process.stop().await;
    }
    finish::check(world).await;
}

/// The lives of the processes in one slot: each is started again when it ended.
async fn live(world: Arc<World>, slot: usize) {
    let mut mishaps = world.plan.mishaps.clone();
    mishaps.retain(|mishap| mishap.slot == slot);
    let mut mishaps = mishaps.into_iter().peekable();
    for life in 0.. {
        let process = Process::new(&world, slot, life);
        let starting = tokio::spawn({
            let process = process.clone();
            async move { process.gate.behind(process.start()).await }
        });
        tokio::task::yield_now().await;
        if life == 0 {
            for writer in 0..world.plan.publishers {
                process.publish(writer);
            }
        }
        while !process.gate.is_dead() {
            let Some(mishap) = mishaps.peek().copied() else {
                process.ended.notified().await;
                break;
            };
            let wait = millis(mishap.at).saturating_sub(world.now());
            tokio::select! {
                biased;
                () = process.ended.notified() => break,
                () = tokio::time::sleep(wait) => {}
            }
            mishaps.next();
            befall(&process, mishap.kind).await;
        }
        drop(starting);
        tokio::time::sleep(millis(world.chance(|rng| rng.u64(0..500)))).await;
    }
}

async fn befall(process: &Arc<Process>, kind: MishapKind) {
    let world = &process.world;
    if world.is_healed() {
        return;
    }
    match kind {
        MishapKind::Crash => process.die(format_args!("at once")),
        MishapKind::CrashInCall { calls, after } => process.crash_after(calls, after),
        MishapKind::Pause { millis: length } => {
            process.say(format_args!("PAUSE for {length} ms"));
            process.gate.pause();
            let left = millis(world.plan.heal_at).saturating_sub(world.now());
            tokio::time::sleep(millis(length).min(left)).await;
            process.say(format_args!("RESUME"));
            process.gate.resume(world.now());
        }
        MishapKind::Stop => {
            let process = process.clone();
            if !process.begin_stop() {
                return;
            }
            drop(tokio::spawn(async move {
                // A bus that is still starting refuses to stop; an operator tries again.
                while !process.is_started() {
                    process.clock_sleep(millis(50)).await;
                }
                process.stop().await;
            }));
        }
        MishapKind::Requeue => {
            let process = process.clone();
            drop(tokio::spawn(async move { process.requeue().await }));
        }
    }
}
