//! Other queues on the same server, each in a database of its own, interleaved with relaybus.
//!
//! A peer is a program of `bench/peers` that `cargo xtask bench` has built. It says `ready` when its jobs are there, begins with
//! a line, and answers with its rate. What could not be built is named and left out.

use std::path::{Path, PathBuf};
use std::process::Command;

use relaybus::{BoxError, DispatcherOptions};
use serde::Deserialize;

use super::cost::{Cost, median};
use super::drains::Drain;
use super::keys::slots;
use super::publish::rate;
use super::report::{Goal, Machine, Plot, Report};
use super::server::Server;
use crate::processes::Started;

/// The variable with the folder of the built peers.
const VARIABLE: &str = "RELAYBUS_BENCH_PEERS";
const DATABASE: &str = "bench_peers";
/// Slots and claims of relaybus, tuned: while a third of the slots is at work, a claim is on its way for another.
const SLOTS: usize = 600;
const BATCH: usize = 200;
/// What takes some three jobs a second by default, for 20 seconds.
const SLOW: usize = 60;

/// One comparison.
struct Match {
    name: &'static str,
    file: &'static str,
    works: bool,
    tuned: bool,
    durable: bool,
    jobs: usize,
    rounds: usize,
    goal: f64,
}

const MATCHES: [Match; 6] = [
    Match {
        name: "drain, tuned",
        file: "drain-tuned",
        works: false,
        tuned: true,
        durable: false,
        jobs: 60_000,
        rounds: 3,
        goal: 2.0,
    },
    Match {
        name: "insert and work, tuned",
        file: "work-tuned",
        works: true,
        tuned: true,
        durable: false,
        jobs: 20_000,
        rounds: 3,
        goal: 2.0,
    },
    Match {
        name: "drain, defaults",
        file: "drain-defaults",
        works: false,
        tuned: false,
        durable: false,
        jobs: 6_000,
        rounds: 2,
        goal: 4.0,
    },
    Match {
        name: "insert and work, defaults",
        file: "work-defaults",
        works: true,
        tuned: false,
        durable: false,
        jobs: 6_000,
        rounds: 2,
        goal: 4.0,
    },
    Match {
        name: "drain, tuned, fsync and page images",
        file: "drain-durable",
        works: false,
        tuned: true,
        durable: true,
        jobs: 60_000,
        rounds: 2,
        goal: 2.0,
    },
    Match {
        name: "insert and work, tuned, fsync and page images",
        file: "work-durable",
        works: true,
        tuned: true,
        durable: true,
        jobs: 20_000,
        rounds: 2,
        goal: 2.0,
    },
];

/// A queue that is compared with.
struct Peer {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<PathBuf>,
    /// Jobs of a comparison of defaults at most, where it takes only a few a second.
    most: usize,
}

/// What a peer answers.
#[derive(Debug, Deserialize)]
struct Answer {
    jobs: usize,
    seconds: f64,
    cpu_seconds: f64,
}

/// The peers that were built.
fn peers(report: &mut Report) -> Vec<Peer> {
    let folder = std::env::var(VARIABLE).map(PathBuf::from).unwrap_or_default();
    let script = folder.join("graphile-worker/main.mjs");
    let packages = folder.join("graphile-worker/node_modules/graphile-worker");
    let native = |name: &'static str, file: &str| (name, folder.join(file), folder.join(file), Vec::new());
    let all = [
        native("River (Go)", "river"),
        ("graphile-worker (Node)", packages, Path::new("node").to_owned(), vec![script]),
        native("riverqueue (Rust)", "riverqueue"),
        native("graphile_worker (Rust)", "graphile-worker-rs"),
        native("apalis (Rust)", "apalis"),
    ];
    let mut built = Vec::new();
    for (name, proof, program, arguments) in all {
        if proof.exists() {
            let most = if name == "graphile_worker (Rust)" { SLOW } else { usize::MAX };
            built.push(Peer { name, program, arguments, most });
        } else {
            report.note(&format!("{name} was not built and is not compared"));
        }
    }
    built
}

/// Every comparison.
///
/// What is known is kept after each: all of them take a while.
pub(crate) async fn run(
    server: &mut Server,
    machine: &Machine,
    rounds: usize,
    percent: usize,
) -> Result<Report, BoxError> {
    let mut report = Report::new("peers");
    let peers = peers(&mut report);
    for game in MATCHES {
        let game = Match { rounds: game.rounds.min(rounds), jobs: (game.jobs * percent / 100).max(100), ..game };
        play(server, &game, &peers, &mut report).await?;
        if percent == 100 {
            report.keep(machine)?;
        }
    }
    server.durable(false).await?;
    server.drop(DATABASE).await?;
    Ok(report)
}

async fn play(server: &mut Server, game: &Match, peers: &[Peer], report: &mut Report) -> Result<(), BoxError> {
    server.durable(game.durable).await?;
    let mut ours = Vec::new();
    let mut theirs: Vec<Vec<Cost>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..game.rounds {
        ours.push(relaybus(game).measure(server, DATABASE).await?);
        for (peer, costs) in peers.iter().zip(&mut theirs) {
            match peer.play(server, game).await {
                Ok(cost) => costs.push(cost),
                Err(error) => report.note(&format!("{}: {} failed: {error}", game.name, peer.name)),
            }
        }
    }
    let ours = median(&ours);
    told(report, game, "relaybus", ours);
    let mut bars = vec![("relaybus".to_owned(), rate(ours))];
    let mut best: Option<(&str, Cost)> = None;
    for (peer, costs) in peers.iter().zip(&theirs).filter(|(_, costs)| !costs.is_empty()) {
        let cost = median(costs);
        told(report, game, peer.name, cost);
        bars.push((peer.name.to_owned(), rate(cost)));
        if best.is_none_or(|(_, other)| cost.wall < other.wall) {
            best = Some((peer.name, cost));
        }
    }
    if let Some((name, cost)) = best {
        report.ratios(&format!("{}: relaybus / {name}", game.name), cost, ours, Goal::AtLeast(game.goal));
    }
    report.plots.push(Plot::new(&format!("peers-{}", game.file), &format!("Jobs a second: {}", game.name), bars));
    Ok(())
}

fn told(report: &mut Report, game: &Match, name: &str, cost: Cost) {
    report.figure(&format!("{}: {name}", game.name), rate(cost), "per second", Goal::None);
    report.figure(&format!("{}: {name}, processor a job", game.name), cost.processor(), "us", Goal::None);
    report.figure(&format!("{}: {name}, of the server", game.name), cost.server, "us", Goal::None);
}

/// How relaybus plays: with the settings that a user would find best, or without any.
fn relaybus(game: &Match) -> Drain {
    let options = if game.tuned { slots(SLOTS).batch_size(BATCH) } else { DispatcherOptions::default() };
    let drain = Drain::new(game.jobs, options);
    if game.works { drain.at_once(1_000) } else { drain }
}

impl Peer {
    async fn play(&self, server: &mut Server, game: &Match) -> Result<Cost, BoxError> {
        server.fresh(DATABASE).await?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(server.url(DATABASE));
        command.arg(if game.works { "work" } else { "drain" }).arg(if game.tuned { "tuned" } else { "default" });
        command.arg(if game.tuned { game.jobs } else { game.jobs.min(self.most) }.to_string());
        let mut started = Started::of(command)?;
        server.settle(DATABASE).await?;
        let meter = server.meter();
        started.go()?;
        let answer: Answer = started.answer()?;
        let server = meter.stop().server;
        let cost = Cost { wall: answer.seconds * 1e6, client: answer.cpu_seconds * 1e6, server };
        Ok(cost.each(answer.jobs))
    }
}
