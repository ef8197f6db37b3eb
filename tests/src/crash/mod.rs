//! Crashes of real processes: workers and publishers on one database, killed and stopped at random, and its server restarted.
//!
//! [`run`] is the parent. It starts processes of the `crash-worker` program ([`main_of_process`]), harms them by a seed, lets the
//! rest of the work drain, and compares what happened with what was promised.
//!
//! # What is known apart from the database
//!
//! - *The plan*: every transaction of a publisher is a pure function of the seed, the publisher and a number, so the parent knows
//!   what each would have written.
//! - *The answers*: a publisher notes a transaction in a file of its own before it begins it and when it was answered. A killed
//!   process loses nothing that it has written to a file, so the disk need not be waited for.
//! - *The journal*: one file to which all processes append whole lines, so that the lines have one order. Workers write when a
//!   handler starts and ends, the parent writes what it does to whom, before it does it.
//!
//! Only the order of commits is taken from the database: from a table of the application, not of the bus.

mod base;
#[cfg(test)]
mod bites;
mod chaos;
#[cfg(feature = "postgres")]
#[path = "../../../xtask/src/cluster.rs"]
#[allow(dead_code, reason = "shared with the commands of the project, which use the rest")]
mod cluster;
mod events;
mod evidence;
mod fleet;
mod handlers;
mod harm;
mod journal;
mod plan;
mod publisher;
mod verdict;
mod worker;

use std::path::{Path, PathBuf};
use std::time::Duration;

use relaybus::{BoxError, DispatcherOptions, RelayBus, RelayBusBuilder, RetryPolicy};

pub use base::Base;
pub use chaos::{Report, run};

/// Length of a worker's lease.
const LEASE: Duration = Duration::from_secs(2);
/// Poll interval of a worker.
const POLL: Duration = Duration::from_millis(300);

/// What a run looks like.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program of the processes: see [`main_of_process`].
    pub program: PathBuf,
    /// Drives the plans and the harm.
    pub seed: u64,
    /// How long processes are harmed.
    pub duration: Duration,
    /// Processes that work.
    pub workers: u32,
    /// Whether to keep the files of a run that went well.
    pub keep: bool,
}

impl Settings {
    /// What `RELAYBUS_CRASH_SEED`, `RELAYBUS_CRASH_SECONDS` and `RELAYBUS_CRASH_KEEP` say: without them a seed by chance, and
    /// `seconds`.
    ///
    /// # Errors
    /// A variable is no whole number.
    pub fn from_environment(program: PathBuf, seconds: u64, workers: u32) -> Result<Self, BoxError> {
        let seed = match number("RELAYBUS_CRASH_SEED")? {
            Some(seed) => seed,
            None => fastrand::u64(0..1_000_000),
        };
        let duration = Duration::from_secs(number("RELAYBUS_CRASH_SECONDS")?.unwrap_or(seconds));
        let keep = std::env::var_os("RELAYBUS_CRASH_KEEP").is_some();
        Ok(Self { program, seed, duration, workers, keep })
    }
}

fn number(variable: &str) -> Result<Option<u64>, BoxError> {
    let Ok(text) = std::env::var(variable) else { return Ok(None) };
    let number = text.parse().map_err(|_| format!("`{variable}` is `{text}`, expected a whole number"))?;
    Ok(Some(number))
}

/// The bus of every process here: the same handlers, so that a publisher knows whom an event is for.
async fn bus<B: Base>(folder: &Path, seed: u64) -> Result<RelayBusBuilder<B>, BoxError> {
    let builder = RelayBus::builder(B::open(folder, seed).await?)
        .source("crash")
        .retry(RetryPolicy {
            attempts: None,
            initial_delay: Duration::from_millis(5),
            factor: 2.0,
            max_delay: Duration::from_millis(200),
        })
        .dispatcher(DispatcherOptions::default().enabled(false));
    Ok(B::handlers(builder))
}

/// The program of a process: `<store> worker|publisher <folder> <slot> <process> <seed>`. It ends when its standard input does,
/// so that nothing outlives the parent.
///
/// # Errors
/// What its work ended with.
pub fn main_of_process(arguments: &[String]) -> Result<(), BoxError> {
    let [store, role, folder, slot, process, seed] = arguments else {
        return Err("usage: crash-worker <store> worker|publisher <folder> <slot> <process> <seed>".into());
    };
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(3);
    });
    let me =
        Process { folder: PathBuf::from(folder), slot: slot.parse()?, number: process.parse()?, seed: seed.parse()? };
    match store.as_str() {
        relaybus_stores::SqliteStore::NAME => work_as::<relaybus_stores::SqliteStore>(role, &me),
        #[cfg(feature = "postgres")]
        relaybus_stores::PostgresStore::NAME => work_as::<relaybus_stores::PostgresStore>(role, &me),
        other => Err(format!("`{other}` is not a store of this program").into()),
    }
}

fn work_as<B: Base>(role: &str, me: &Process) -> Result<(), BoxError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match role {
        "worker" => runtime.block_on(worker::work::<B>(me)),
        "publisher" => runtime.block_on(publisher::publish::<B>(me)),
        other => Err(format!("`{other}` is not a role: use `worker` or `publisher`").into()),
    }
}

/// How long the start of a bus is tried: the server may be restarted just then.
const STARTING: Duration = Duration::from_secs(20);

/// The bus that `make` makes, started.
async fn started<B: Base>(make: impl AsyncFn() -> Result<RelayBus<B>, BoxError>) -> Result<RelayBus<B>, BoxError> {
    let began = std::time::Instant::now();
    loop {
        let bus = make().await?;
        match bus.start().await {
            Ok(_) => return Ok(bus),
            Err(error) if began.elapsed() > STARTING => return Err(error.into()),
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

/// Who a process is.
#[derive(Clone, Debug)]
struct Process {
    folder: PathBuf,
    /// The place it fills; its successor gets the same.
    slot: u32,
    /// The number of this start.
    number: u32,
    seed: u64,
}

impl Process {
    /// Chance of this start.
    fn chance(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed ^ (u64::from(self.number) << 32))
    }
}
