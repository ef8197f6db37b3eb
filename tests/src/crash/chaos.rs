//! The run: harm by a seed, then peace until everything is done, then the verdict.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use relaybus::{BoxError, RelayBus};

use super::evidence::Evidence;
use super::fleet::{Counts, Fleet, Role};
use super::verdict::{self, Figures};
use super::{Base, LEASE, Settings, bus};

const PUBLISHERS: u32 = 2;
/// How often the parent looks at its processes.
const LOOK: Duration = Duration::from_millis(20);
/// Everything must be done this long after the last harm. Far more than it takes: it tells "stuck" from "slow".
const DRAIN: Duration = Duration::from_secs(120);
/// Faults that a story tells.
const TOLD: usize = 8;

/// What a run showed.
#[derive(Debug)]
pub struct Report {
    counts: Counts,
    figures: Figures,
    drained: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { killed_workers, killed_publishers, stopped, terminated, aborted, restarted } = self.counts;
        writeln!(
            f,
            "killed {killed_workers} workers and {killed_publishers} publishers, stopped {stopped} for longer than a lease, \
             asked {terminated} to end, {aborted} ended by a poison event, restarted the server {restarted} times"
        )?;
        write!(f, "{}; drained in {:.1} s", self.figures, self.drained.as_secs_f64())
    }
}

/// Runs it.
///
/// # Errors
/// A story: the seed, what went wrong, and what led to it.
pub fn run<B: Base>(settings: &Settings) -> Result<Report, BoxError> {
    let folder = tempfile::Builder::new().prefix(&format!("relaybus-{}-crash-", B::NAME)).tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(run_in::<B>(settings, folder.path())) {
        Ok(report) => {
            if settings.keep {
                println!("files kept in `{}`", folder.keep().display());
            }
            Ok(report)
        }
        Err(error) => {
            let kept = folder.keep();
            let Settings { seed, duration, .. } = settings;
            Err(format!("seed {seed}, {} s of harm, files kept in `{}`: {error}", duration.as_secs(), kept.display())
                .into())
        }
    }
}

async fn run_in<B: Base>(settings: &Settings, folder: &Path) -> Result<Report, BoxError> {
    let mut server = B::create(folder).await?;
    let mut fleet = Fleet::new(settings, folder, B::NAME)?;
    harm::<B>(&mut fleet, &mut server, settings)?;
    let counts = fleet.counts;
    let began = Instant::now();
    drain::<B>(&mut fleet, folder, settings.seed).await?;
    let drained = began.elapsed();
    let mut faults = std::mem::take(&mut fleet.faults);
    let evidence = Evidence::collect::<B>(folder, settings, PUBLISHERS).await?;
    let (found, figures) = verdict::judge(&evidence);
    faults.extend(found);
    if !faults.is_empty() {
        let count = faults.len();
        faults.truncate(TOLD);
        return Err(format!("{count} faults\n\n{}\n", faults.join("\n\n")).into());
    }
    Ok(Report { counts, figures, drained })
}

fn harm<B: Base>(fleet: &mut Fleet, server: &mut B::Server, settings: &Settings) -> Result<(), BoxError> {
    let mut rng = fastrand::Rng::with_seed(settings.seed);
    for slot in 0..settings.workers {
        fleet.add(Role::Worker, slot)?;
    }
    for slot in 0..PUBLISHERS {
        fleet.add(Role::Publisher, slot)?;
    }
    let end = Instant::now() + settings.duration;
    let mut next = Instant::now() + Duration::from_millis(700);
    // A few times in a run.
    let mut restart = Instant::now() + settings.duration / 4;
    while Instant::now() < end {
        std::thread::sleep(LOOK);
        fleet.look(Duration::from_millis(rng.u64(10..600)))?;
        fleet.let_go_on(false);
        fleet.replace(Role::Worker)?;
        fleet.replace(Role::Publisher)?;
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + Duration::from_millis(rng.u64(50..900));
        if Instant::now() >= restart && fleet.nobody_was_asked_to_end() {
            restart = Instant::now() + settings.duration / 3;
            fleet.restart::<B>(server, &mut rng)?;
        } else {
            act(fleet, &mut rng);
        }
        if !fleet.faults.is_empty() {
            break;
        }
    }
    Ok(())
}

fn act(fleet: &mut Fleet, rng: &mut fastrand::Rng) {
    let (role, deed) = match rng.u32(0..100) {
        0..45 => (Role::Worker, 0),
        45..60 => (Role::Publisher, 0),
        60..76 => (Role::Worker, 1),
        76..80 => (Role::Publisher, 1),
        80..95 => (Role::Worker, 2),
        95..97 => (Role::Publisher, 2),
        _ => {
            for index in fleet.running(Role::Worker) {
                fleet.kill(index);
            }
            return;
        }
    };
    let Some(victim) = rng.choice(fleet.running(role)) else { return };
    match deed {
        0 => fleet.kill(victim),
        // Below SQLite's own patience with a stopped process that has the write lock.
        1 => fleet.stop(victim, LEASE + Duration::from_millis(rng.u64(200..1800))),
        _ => fleet.terminate(victim),
    }
}

/// Ends the publishers, waits until nothing is left to do, ends the workers.
async fn drain<B: Base>(fleet: &mut Fleet, folder: &Path, seed: u64) -> Result<(), BoxError> {
    let deadline = Instant::now() + DRAIN;
    fleet.let_go_on(true);
    for index in fleet.running(Role::Publisher) {
        fleet.terminate(index);
    }
    let bus = observer::<B>(folder, seed).await?;
    loop {
        tokio::time::sleep(LOOK * 5).await;
        fleet.look(Duration::ZERO)?;
        fleet.replace(Role::Worker)?;
        let (pending, processing, sessions) = unfinished(&bus, folder).await?;
        let workers = fleet.running(Role::Worker).len();
        if fleet.all_gone(Role::Publisher) && pending + processing == 0 && sessions <= workers as u64 {
            break;
        }
        if Instant::now() > deadline {
            let left = listed(&bus).await?;
            fleet.faults.push(format!(
                "stuck: {pending} pending and {processing} processing deliveries, {sessions} sessions of {workers} workers after {DRAIN:?} without harm\n{left}"
            ));
            break;
        }
    }
    for index in fleet.running(Role::Worker) {
        fleet.terminate(index);
    }
    while !(fleet.all_gone(Role::Worker) && fleet.all_gone(Role::Publisher)) {
        std::thread::sleep(LOOK);
        fleet.look(Duration::ZERO)?;
    }
    bus.store().close().await?;
    Ok(())
}

/// A bus that only looks.
pub(super) async fn observer<B: Base>(folder: &Path, seed: u64) -> Result<RelayBus<B>, BoxError> {
    let journal = super::journal::Journal::open(&folder.join("journal"))?;
    let chance = std::sync::Mutex::new(fastrand::Rng::with_seed(seed));
    let bus = bus::<B>(folder, seed).await?.provide(super::handlers::World { journal, process: 0, chance }).build()?;
    // The first harm may have come before any process set the store up.
    bus.store().setup().await?;
    Ok(bus)
}

async fn unfinished<B: Base>(bus: &RelayBus<B>, folder: &Path) -> Result<(u64, u64, u64), BoxError> {
    let counts = bus.statistics().await?;
    Ok((counts.pending, counts.processing, bus.store().sessions(folder).await?))
}

async fn listed<B: Base>(bus: &RelayBus<B>) -> Result<String, BoxError> {
    let mut query = relaybus::store::DeliveryQuery::all();
    query.limit = TOLD;
    let page = bus.list_deliveries(&query).await?;
    let lines = page.deliveries.iter().map(|delivery| format!("  {delivery:?}"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}
