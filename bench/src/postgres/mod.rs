//! The PostgreSQL store beside raw statements and beside other queues, on one server, interleaved in one run.

mod claims;
mod cost;
mod dispatch;
mod drains;
mod keys;
mod latency;
mod peers;
mod plot;
mod publish;
mod report;
mod server;
mod workers;

use relaybus::BoxError;

use crate::events::runtime;
use report::{Machine, Report};
use server::Server;

/// The groups, in the order in which they run.
pub(crate) const GROUPS: [&str; 8] = [
    "postgres-publish",
    "postgres-dispatch",
    "postgres-slots",
    "postgres-keys",
    "postgres-claims",
    "postgres-latency",
    "postgres-workers",
    "postgres-peers",
];

/// Those that take seconds even when they measure nothing: they wait for processes, or fill large tables.
const SLOW: [&str; 4] = ["postgres-claims", "postgres-latency", "postgres-workers", "postgres-peers"];

/// Whether a smoke run leaves a group out that nobody asked for by its name.
pub(crate) fn is_slow(group: &str) -> bool {
    SLOW.contains(&group)
}

/// How much a group does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    rounds: usize,
    /// Of the events that a round has.
    percent: usize,
}

/// Runs a group. A smoke run shows that it works, and keeps nothing.
pub(crate) fn run(group: &str, smoke: bool) -> Result<(), BoxError> {
    let extent = if smoke { Extent { rounds: 1, percent: 1 } } else { Extent { rounds: 5, percent: 100 } };
    runtime()?.block_on(async {
        let mut server = Server::connect().await?;
        let machine = Machine::here(server.version().await?);
        println!("{group}: {machine:?}");
        let report = group_of(group, &mut server, &machine, extent).await?;
        if smoke { Ok(()) } else { report.keep(&machine) }
    })
}

async fn group_of(group: &str, server: &mut Server, machine: &Machine, extent: Extent) -> Result<Report, BoxError> {
    let Extent { rounds, percent } = extent;
    match group {
        "postgres-publish" => publish::run(server, rounds, percent).await,
        "postgres-dispatch" => dispatch::run(server, rounds, percent).await,
        "postgres-slots" => keys::tune(server, rounds.min(3), percent).await,
        "postgres-keys" => keys::run(server, rounds.min(3), percent).await,
        "postgres-claims" => claims::run(server, rounds.min(3), percent).await,
        "postgres-latency" => latency::run(server, rounds.min(3), percent).await,
        "postgres-workers" => workers::run(server, rounds.min(3), percent).await,
        "postgres-peers" => peers::run(server, machine, rounds.min(2), percent).await,
        other => Err(format!("`{other}` is not a group").into()),
    }
}

/// This program as another process of a benchmark.
pub(crate) fn process(role: &str, url: &str) -> Result<(), BoxError> {
    runtime()?.block_on(async {
        match role {
            "pg-listener" => latency::listen(url).await,
            "pg-worker" => workers::work(url).await,
            other => Err(format!("`{other}` is not a role").into()),
        }
    })
}
