//! `cargo xtask bench`: the benchmarks in the release profile, with a PostgreSQL server of their own where they need one.

use std::fs;
use std::path::PathBuf;

use crate::cluster::Cluster;
use crate::test_command::finished;
use crate::{Outcome, peers, postgres, workspace};

/// The variable that tells the benchmarks where the server is.
const SERVER: &str = "RELAYBUS_BENCH_POSTGRES_URL";
/// The groups that need a server, and those among them that need peers.
const POSTGRES: &str = "postgres";
const PEERS: &str = "postgres-peers";

/// A server that spends its time on queries, not on the disk; the benchmarks turn durability on where they want it.
const SETTINGS: &str = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nshared_buffers = 1GB\n\
    max_wal_size = 4GB\nmax_connections = 300\nwal_level = replica\n";

/// Runs the groups of benchmarks whose names begin as the arguments say, or all of them.
///
/// # Errors
///
/// When a server cannot be started, or a benchmark fails.
pub(crate) fn run(arguments: &[&str]) -> Outcome {
    let groups: Vec<&str> = arguments.iter().copied().filter(|argument| !argument.starts_with("--")).collect();
    let wants = |group: &str| {
        groups.is_empty() || groups.iter().any(|wanted| group.starts_with(wanted) || wanted.starts_with(group))
    };
    let server = if wants(POSTGRES) { Some(Server::start()?) } else { None };
    let mut command = workspace::cargo();
    command.args(["run", "--release", "--package", "relaybus-bench"]);
    if let Some(server) = &server {
        command.args(["--features", "postgres"]).env(SERVER, &server.url);
        if wants(PEERS) {
            command.env(peers::VARIABLE, peers::build()?);
        }
    }
    let status = command.arg("--").args(arguments).status()?;
    drop(server);
    if status.success() {
        Ok("bench: done".to_owned())
    } else {
        Err(format!("the benchmarks ended with {status}").into())
    }
}

/// A little of every benchmark that is quick to show that it runs.
///
/// # Errors
///
/// When one does not.
pub(crate) fn smoke() -> Outcome {
    let mut command = workspace::cargo();
    command.args(["run", "--package", "relaybus-bench"]);
    // Where PostgreSQL cannot be had, its own tests say so.
    let server = Server::start().ok();
    if let Some(server) = &server {
        command.args(["--features", "postgres"]).env(SERVER, &server.url);
    }
    finished(command.args(["--", "--smoke"]))
}

/// The server that the environment names, or one of the benchmarks' own: it ends with this.
struct Server {
    url: String,
    own: Option<(Cluster, PathBuf)>,
}

impl Server {
    fn start() -> Result<Self, Box<dyn std::error::Error>> {
        if let Some(url) = std::env::var(SERVER).ok().filter(|url| !url.is_empty()) {
            return Ok(Self { url, own: None });
        }
        let folder = std::env::temp_dir().join(format!("relaybus-bench-{}", std::process::id()));
        let cluster = Cluster::create(postgres::install()?, &folder, SETTINGS)?;
        cluster.start()?;
        Ok(Self { url: cluster.url(), own: Some((cluster, folder)) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some((cluster, folder)) = &self.own else { return };
        if let Err(error) = cluster.stop("immediate") {
            eprintln!("the server of the benchmarks still runs in `{}`: {error}", folder.display());
            return;
        }
        // Left behind it costs room on the disk and nothing else.
        let _ = fs::remove_dir_all(folder);
    }
}
