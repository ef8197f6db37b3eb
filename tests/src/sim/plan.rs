//! The plan of a simulation: everything that is decided before it starts, drawn from the seed.

use std::fmt;

use fastrand::Rng;
use relaybus::registry::Order;

/// What a seed decides. Times are milliseconds of the simulation.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) processes: usize,
    pub(crate) poll: u64,
    pub(crate) lease: u64,
    pub(crate) shutdown: u64,
    pub(crate) concurrency: usize,
    pub(crate) batch: usize,
    pub(crate) window: u64,
    pub(crate) run_length: usize,
    /// Whether the store keeps completed deliveries.
    pub(crate) history: bool,
    /// Of 100 wake-ups, how many arrive.
    pub(crate) wakes: u32,
    pub(crate) keys: u32,
    /// Events that each publisher writes, and the longest wait between two of them.
    pub(crate) events: u32,
    pub(crate) publishers: usize,
    pub(crate) pace: u64,
    pub(crate) faults: Faults,
    pub(crate) outages: Vec<Outage>,
    pub(crate) handlers: Vec<HandlerPlan>,
    pub(crate) mishaps: Vec<Mishap>,
    /// When the faults end.
    pub(crate) heal_at: u64,
}

/// How often store calls go wrong, in 1000.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) refused: u32,
    pub(crate) lost: u32,
    pub(crate) slow: u32,
    pub(crate) hang: u32,
    /// Usual latency.
    pub(crate) latency: u64,
}

/// A time in which every call of a process (or of all) fails or hangs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outage {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) slot: Option<usize>,
    pub(crate) hangs: bool,
}

/// A handler and how it behaves.
#[derive(Clone, Debug)]
pub(crate) struct HandlerPlan {
    pub(crate) id: String,
    /// Whether it handles the second type of event.
    pub(crate) beta: bool,
    pub(crate) transactional: bool,
    pub(crate) order: Order,
    pub(crate) concurrency: Option<usize>,
    pub(crate) timeout: Option<u64>,
    pub(crate) attempts: u32,
    /// Of 100 runs, how many do not succeed.
    pub(crate) failing: u32,
    /// Its usual longest run.
    pub(crate) slow: u64,
    /// The processes that have it.
    pub(crate) on: Vec<bool>,
}

/// Something that happens to a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mishap {
    pub(crate) at: u64,
    pub(crate) slot: usize,
    pub(crate) kind: MishapKind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MishapKind {
    /// Dies at that time.
    Crash,
    /// Dies in the call that comes so many calls later, before or after it had its effect.
    CrashInCall { calls: u64, after: bool },
    /// Does nothing for a while.
    Pause { millis: u64 },
    /// Stops in order and is started again.
    Stop,
    /// An operator requeues what is dead.
    Requeue,
}

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

impl Plan {
    pub(crate) fn draw(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed ^ 0x5117_ab1e);
        let processes = rng.usize(1..=4);
        let lease = pick(rng, &[600, 1000, 3000, 10_000]);
        let concurrency = pick(rng, &[1, 2, 4, 10]);
        let heal_at = rng.u64(5_000..25_000);
        let mut plan = Self {
            seed,
            processes,
            poll: pick(rng, &[20, 100, 500, 1000]),
            lease,
            shutdown: pick(rng, &[500, 2000, 8000]),
            concurrency,
            batch: rng.usize(1..=concurrency),
            window: pick(rng, &[0, 2, 2, 20]),
            run_length: pick(rng, &[1, 3, 20, 20]),
            history: rng.bool(),
            wakes: pick(rng, &[0, 50, 100, 100]),
            keys: rng.u32(1..=4),
            events: rng.u32(5..=30),
            publishers: rng.usize(1..=2),
            pace: pick(rng, &[5, 50, 400]),
            faults: faults(rng),
            outages: Vec::new(),
            handlers: Vec::new(),
            mishaps: Vec::new(),
            heal_at,
        };
        let handlers = rng.usize(1..=4);
        plan.handlers = (0..handlers).map(|number| handler(rng, number, processes, lease)).collect();
        if rng.u32(..3) == 0 {
            let from = rng.u64(..heal_at);
            let to = from + rng.u64(100..lease * 2);
            let slot = rng.bool().then(|| rng.usize(..processes));
            plan.outages.push(Outage { from, to, slot, hangs: rng.bool() });
        }
        let mishaps = pick(rng, &[0, 0, 1, 2, 4, 8]);
        plan.mishaps = (0..mishaps).map(|_| mishap(rng, processes, heal_at, lease)).collect();
        plan.mishaps.sort_by_key(|mishap| mishap.at);
        plan
    }

    /// Longest wait of a call that hangs.
    pub(crate) fn longest_hang(&self) -> u64 {
        self.lease * 2
    }
}

fn faults(rng: &mut Rng) -> Faults {
    let latency = pick(rng, &[0, 0, 2, 15]);
    match rng.u32(..4) {
        0 => Faults { latency, ..Faults::default() },
        1 => Faults { refused: 20, lost: 20, slow: 20, hang: 0, latency },
        2 => Faults { refused: 60, lost: 60, slow: 60, hang: 15, latency },
        _ => Faults { refused: 10, lost: 150, slow: 30, hang: 5, latency },
    }
}

fn handler(rng: &mut Rng, number: usize, processes: usize, lease: u64) -> HandlerPlan {
    let transactional = rng.u32(..5) < 2;
    HandlerPlan {
        id: format!("{}{number}", if transactional { "tx" } else { "h" }),
        beta: rng.u32(..4) == 0,
        transactional,
        order: if rng.u32(..4) == 0 { Order::Replay } else { Order::Strict },
        concurrency: pick(rng, &[None, None, Some(1), Some(2)]),
        timeout: rng.bool().then(|| rng.u64(50..lease * 2)),
        attempts: rng.u32(1..=6),
        failing: pick(rng, &[0, 10, 40]),
        slow: pick(rng, &[0, 10, 100]),
        // The first process has them all, so that nothing is left for nobody.
        on: (0..processes).map(|slot| slot == 0 || rng.u32(..4) > 0).collect(),
    }
}

fn mishap(rng: &mut Rng, processes: usize, heal_at: u64, lease: u64) -> Mishap {
    let kind = match rng.u32(..10) {
        0..=1 => MishapKind::Crash,
        2..=4 => MishapKind::CrashInCall { calls: rng.u64(1..60), after: rng.bool() },
        5..=6 => MishapKind::Pause { millis: rng.u64(50..lease * 3) },
        7..=8 => MishapKind::Stop,
        _ => MishapKind::Requeue,
    };
    Mishap { at: rng.u64(100..heal_at), slot: rng.usize(..processes), kind }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} processes; poll {} ms, lease {} ms, shutdown {} ms, concurrency {}, batch {}, completion window {} ms, \
             run length {}; history {}, wake-ups {} %",
            self.seed,
            self.processes,
            self.poll,
            self.lease,
            self.shutdown,
            self.concurrency,
            self.batch,
            self.window,
            self.run_length,
            self.history,
            self.wakes
        )?;
        writeln!(
            f,
            "publishers: {} a process, {} events each over {} keys, up to {} ms apart",
            self.publishers, self.events, self.keys, self.pace
        )?;
        writeln!(f, "store: {:?}, outages {:?}; healed at {} ms", self.faults, self.outages, self.heal_at)?;
        for handler in &self.handlers {
            writeln!(f, "{handler:?}")?;
        }
        for mishap in &self.mishaps {
            writeln!(f, "{mishap:?}")?;
        }
        Ok(())
    }
}
