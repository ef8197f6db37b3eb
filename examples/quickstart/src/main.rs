//! The quickstart: imports webhooks, publishes each as an event in the transaction of its row, handles them, and checks
//! that every event took effect exactly once and in order.
//!
//! Read it in this order: `events` (what happens), `handlers` (what is done about it), `main` (the bus), `import`
//! (publishing), `check` (what is guaranteed). `tables` has the SQL; `options`, `report` and `workers` are around it, and `postgres` is the same
//! for PostgreSQL.
#![allow(unreachable_pub, reason = "a program has no callers: `pub` is short for its own modules")]
#![allow(clippy::disallowed_methods, reason = "a program runs in real time, with real processes")]

mod check;
mod events;
mod handlers;
mod import;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod report;
mod tables;
mod workers;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use relaybus::store::{DeliveryQuery, DeliveryRecord, DeliveryStatus};
use relaybus::{BoxError, DispatcherOptions, EventStore, MemoryStore, RelayBus};
use relaybus_stores::SqliteStore;

use import::File;
use options::{HELP, Options};
use report::{Progress, Report, say, with_causes};
use tables::Tables;
use workers::Workers;

type Result<T = (), E = BoxError> = std::result::Result<T, E>;

#[tokio::main]
async fn main() -> ExitCode {
    // Not `args()`, which panics at an argument that is not UTF-8.
    let outcome =
        match Options::read(std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned())) {
            Ok(options) => run(&options).await,
            Err(error) => Err(error.into()),
        };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "quickstart: {}", with_causes(error));
            ExitCode::FAILURE
        }
    }
}

/// Does what was asked for. The answer is whether the check at the end found everything right.
async fn run(options: &Options) -> Result<bool> {
    if options.help {
        say(HELP);
        return Ok(true);
    }
    if options.worker {
        let (bus, _) = open(&options.store, true).await?;
        workers::work(&bus).await?;
        return Ok(true);
    }
    let file = File::read(options.file.as_deref())?;
    let (bus, tables) = open(&options.store, options.workers == 0).await?;
    let _alone = workers::be_the_only_one(&options.store).await?;
    bus.start().await?;
    tables.create(&bus).await?;
    let before = tables.read(&bus).await?;
    let began = Instant::now();

    let mut workers = Workers::start(options.workers, &options.store)?;
    let mut progress = Progress::start();
    import::import(&file, options.times, &before, &bus, &tables, &mut progress).await?;
    let helper = finish(&bus, &mut workers, &options.store, &mut progress).await?;
    progress.end();
    let took = began.elapsed();

    let after = tables.read(&bus).await?;
    let dead = dead_letters(&bus).await?;
    let report = Report {
        workers: workers.started,
        lost_workers: workers.lost,
        problems: check::check(&file, options.times, &after, &dead),
        ..Report::new(&without_password(&options.store), &before, &after, &dead, took)
    };
    workers.stop().await?;
    if let Some(helper) = helper {
        helper.stop().await?;
    }
    bus.stop().await?;
    report.print(options.json)?;
    Ok(report.problems.is_empty())
}

/// Opens the store that a URL names, with the tables beside it.
async fn open(url: &str, is_handling: bool) -> Result<(RelayBus, Tables)> {
    if url == "memory:" {
        let tables = Tables::Memory(Arc::default());
        return Ok((build(MemoryStore::new(), &tables, is_handling)?, tables));
    }
    #[cfg(feature = "postgres")]
    if postgres::is_named_by(url) {
        let store = relaybus_stores::PostgresStore::builder(url).build()?;
        return Ok((build(store, &Tables::Postgres, is_handling)?, Tables::Postgres));
    }
    if !url.starts_with("sqlite:") {
        let known = "use `sqlite://path`, `memory:`, or `postgres://..` in a build with `--features postgres`";
        return Err(format!("`{}` names no store that this program knows: {known}", without_password(url)).into());
    }
    let store = SqliteStore::from_url(url)?.build().await?;
    Ok((build(store, &Tables::Sqlite, is_handling)?, Tables::Sqlite))
}

/// A URL as it may be shown.
pub fn without_password(url: &str) -> String {
    let password = || {
        let start = url.find("://")? + 3;
        let end = start + url[start..].split('/').next()?.rfind('@')?;
        let colon = start + url[start..end].find(':')?;
        Some(format!("{}{}", &url[..colon], &url[end..]))
    };
    password().unwrap_or_else(|| url.to_owned())
}

/// The bus, the same on every store.
fn build<S: EventStore>(store: S, tables: &Tables, is_handling: bool) -> relaybus::Result<RelayBus> {
    let dispatcher = DispatcherOptions::default()
        .enabled(is_handling)
        // Short, so that the work of a killed worker is taken over soon, and retries are found soon.
        .lease("5s")
        .poll_interval("50ms");
    let bus = RelayBus::builder(store)
        .source("quickstart")
        .discover_handlers()
        .provide(tables.clone())
        .dispatcher(dispatcher)
        .transaction_timeout("30s")
        .build()?;
    // The rest of the program does not care which store it is.
    Ok(bus.any())
}

/// Waits until nothing is left to do. When no worker is left to do it, this process does: the answer is its bus.
async fn finish(
    bus: &RelayBus,
    workers: &mut Workers,
    store: &str,
    progress: &mut Progress,
) -> Result<Option<RelayBus>> {
    let mut helper = None;
    let mut total = 0;
    loop {
        let statistics = bus.statistics().await?;
        let left = usize::try_from(statistics.pending + statistics.processing)?;
        total = left.max(total);
        progress.show(total - left, total, format_args!("imported; {left} deliveries left"));
        if left == 0 {
            return Ok(helper);
        }
        workers.notice_losses()?;
        if workers.started > 0 && workers.are_gone() && helper.is_none() {
            say("no worker is left: this process goes on");
            let (own, _) = open(store, true).await?;
            own.start().await?;
            helper = Some(own);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How often to look whether the work is done.
const LOOK: Duration = Duration::from_millis(20);

async fn dead_letters(bus: &RelayBus) -> Result<Vec<DeliveryRecord>> {
    let mut dead = Vec::new();
    let mut query = DeliveryQuery::all().status(DeliveryStatus::Dead);
    loop {
        let page = bus.list_deliveries(&query).await?;
        dead.extend(page.deliveries);
        match page.next {
            Some(next) => query = query.after(next),
            None => return Ok(dead),
        }
    }
}
