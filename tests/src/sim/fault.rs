//! What goes wrong with one store call.

use std::sync::atomic::Ordering;
use std::time::Duration;

use relaybus::Error;

use super::process::Process;

/// The fate of one call, drawn before it is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    /// Milliseconds before the statement reaches the store, and before its answer arrives.
    before: u64,
    after: u64,
    /// It never reaches the store.
    refused: bool,
    /// It takes effect and its answer is lost.
    lost: bool,
    /// The process dies before or after the effect.
    dies_before: bool,
    dies_after: bool,
}

/// How a call that went wrong looks to its caller.
pub(crate) fn unreachable(what: &str) -> Error {
    Error::store_retryable(format!("simulated: the store did not answer `{what}`"), "connection lost")
}

/// Most store calls of one process within one millisecond that are still no busy loop.
const MOST_CALLS_AT_ONCE: u64 = 2000;

/// Most store calls of one process in a whole simulation.
const MOST_CALLS: u64 = 200_000;

impl Process {
    /// Sends a call: waits for the gate and the way to the store. `Err` when it never arrives.
    pub(crate) async fn send(&self, what: &str) -> Result<Fate, Error> {
        self.gate.open().await;
        self.count_call();
        let fate = self.draw_fate(what);
        if fate.dies_before {
            self.die(format_args!("dies before `{what}` has its effect"));
        }
        self.pass(fate.before).await;
        if fate.refused {
            self.say(format_args!("FAULT `{what}` did not reach the store"));
            return Err(unreachable(what));
        }
        Ok(fate)
    }

    /// Receives the answer of a call that had its effect. `Err` when the answer is lost.
    pub(crate) async fn receive(&self, what: &str, fate: Fate) -> Result<(), Error> {
        if fate.dies_after {
            self.die(format_args!("dies after `{what}` had its effect"));
        }
        self.pass(fate.after).await;
        if fate.lost {
            self.say(format_args!("FAULT the answer of `{what}` is lost"));
            return Err(unreachable(what));
        }
        Ok(())
    }

    async fn pass(&self, millis: u64) {
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        self.gate.open().await;
    }

    fn count_call(&self) {
        let now = self.world.now().as_millis();
        let (calls, at_once) = {
            let mut meter = super::world::lock(&self.meter);
            meter.calls += 1;
            if meter.at != now {
                meter.at = now;
                meter.at_once = 0;
            }
            meter.at_once += 1;
            (meter.calls, meter.at_once)
        };
        if at_once > MOST_CALLS_AT_ONCE || calls > MOST_CALLS {
            let text = format!("{} made {at_once} store calls within a millisecond, {calls} in all", self.name);
            self.world.violate("no busy loop", text, vec![self.name.clone()]);
            self.gate.kill();
        }
    }

    fn draw_fate(&self, what: &str) -> Fate {
        let world = &self.world;
        let plan = &world.plan;
        let now = u64::try_from(world.now().as_millis()).unwrap_or(u64::MAX);
        let mut fate = Fate::default();
        let (before, after) = world.chance(|rng| (rng.u64(0..=plan.faults.latency), rng.u64(0..=plan.faults.latency)));
        (fate.before, fate.after) = (before, after);
        if world.is_healed() {
            return fate;
        }
        if let Some(after) = self.dies_in_this_call() {
            (fate.dies_before, fate.dies_after) = (!after, after);
        }
        let faults = &plan.faults;
        let outage = plan
            .outages
            .iter()
            .find(|outage| (outage.from..outage.to).contains(&now) && outage.slot.is_none_or(|slot| slot == self.slot));
        if let Some(outage) = outage {
            fate.refused = true;
            fate.before = if outage.hangs { world.chance(|rng| rng.u64(100..plan.longest_hang())) } else { 1 };
        } else if world.happens(faults.refused, 1000) {
            fate.refused = true;
        } else if world.happens(faults.lost, 1000) {
            fate.lost = true;
        } else if world.happens(faults.slow, 1000) {
            fate.before = world.chance(|rng| rng.u64(10..200));
        } else if world.happens(faults.hang, 1000) {
            let hang = world.chance(|rng| rng.u64(100..plan.longest_hang()));
            self.say(format_args!("FAULT `{what}` hangs for {hang} ms"));
            match world.chance(|rng| rng.u32(..3)) {
                0 => (fate.before, fate.refused) = (hang, true),
                1 => (fate.after, fate.lost) = (hang, true),
                _ => fate.after = hang,
            }
        }
        fate
    }

    /// Whether a planned crash is due in this call; `true` for after its effect.
    fn dies_in_this_call(&self) -> Option<bool> {
        let mut crash = super::world::lock(&self.crash_in_call);
        let (calls, after) = (*crash)?;
        if calls > 1 {
            *crash = Some((calls - 1, after));
            return None;
        }
        *crash = None;
        Some(after)
    }

    /// Store calls so far.
    pub(crate) fn calls(&self) -> u64 {
        super::world::lock(&self.meter).calls
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::SeqCst) + 1
    }
}
