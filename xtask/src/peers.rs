//! Building the queues that the benchmarks of the PostgreSQL store are compared with: `bench/peers`, each with its own manifest and lock
//! file, built into a folder of the target folder. One that cannot be built is named, and the comparison goes on without it.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace;

/// The variable that tells the benchmarks where the built peers are.
pub(crate) const VARIABLE: &str = "RELAYBUS_BENCH_PEERS";

/// The peers in Rust.
const CRATES: [&str; 3] = ["riverqueue", "graphile-worker-rs", "apalis"];

/// Builds every peer; the folder that has one entry for each that was built.
///
/// # Errors
///
/// When the folder cannot be made.
pub(crate) fn build() -> Result<PathBuf, Box<dyn Error>> {
    let folder = workspace::target().join("peers");
    fs::create_dir_all(&folder)?;
    report("river", river(&folder));
    report("graphile-worker", graphile_worker(&folder));
    for name in CRATES {
        report(name, of_a_crate(&folder, name));
    }
    Ok(folder)
}

fn report(name: &str, built: Result<(), Box<dyn Error>>) {
    match built {
        Ok(()) => println!("peer {name}: built"),
        Err(error) => println!("peer {name}: cannot be built, the comparison goes on without it: {error}"),
    }
}

fn source(name: &str) -> PathBuf {
    workspace::root().join("bench/peers").join(name)
}

/// The program of Go's River.
fn river(folder: &Path) -> Result<(), Box<dyn Error>> {
    run(Command::new("go").args(["build", "-o"]).arg(folder.join("river")).arg(".").current_dir(source("river")))
}

/// A folder with the script and its packages.
fn graphile_worker(folder: &Path) -> Result<(), Box<dyn Error>> {
    let (from, to) = (source("graphile-worker"), folder.join("graphile-worker"));
    fs::create_dir_all(&to)?;
    for file in ["package.json", "package-lock.json", "main.mjs"] {
        fs::copy(from.join(file), to.join(file))?;
    }
    run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(to))
}

/// The program of a crate.
fn of_a_crate(folder: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    let target = folder.join("cargo");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    run(cargo
        .args(["build", "--release", "--locked", "--target-dir"])
        .arg(&target)
        .current_dir(source(name))
        // The variables that Cargo sets for this program are about another workspace.
        .env_remove("CARGO_MANIFEST_DIR"))?;
    fs::copy(target.join("release").join(format!("bench-peer-{name}")), folder.join(name))?;
    Ok(())
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(words.lines().last().unwrap_or("it failed without a word").to_owned().into())
}
