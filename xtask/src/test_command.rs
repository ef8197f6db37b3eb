//! `cargo xtask test`: everything a change must pass, the quick checks first.

use std::fs;
use std::process::Command;

use crate::steps::Steps;
use crate::tally::Tally;
use crate::{Outcome, bench, child, features, licences, postgres, quickstart, services, tidy, workspace};

/// How much to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything.
    Whole,
    /// Without formatting, lints, style, licences and docs.
    Quick,
    /// What needs a PostgreSQL server.
    Postgres,
}

/// Runs the steps and sums them up.
///
/// # Errors
///
/// When a step failed.
pub(crate) fn run(extent: Extent) -> Outcome {
    let mut steps = Steps::default();
    services::announce();
    steps.step("toolchain", |_| toolchain());
    if extent == Extent::Whole {
        steps.step("format", |_| cargo(&["fmt", "--all", "--", "--check"]));
        steps.step("tidy", |_| tidy::run());
        steps.step("licences", |_| licences::run());
        steps.step("lints", |_| cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
        steps.step("features", |_| features::run());
        steps.step("docs", |_| docs());
    }
    if extent == Extent::Postgres {
        steps.step("postgres", postgres_tests);
        steps.step("newest postgres", newest_postgres_tests);
        return steps.finish();
    }
    steps.step("tests", |tally| tests(&["--lib", "--bins", "--tests", "--examples"], tally));
    steps.step("postgres", postgres_tests);
    steps.step("newest postgres", newest_postgres_tests);
    steps.step("doc tests", |tally| tests(&["--doc"], tally));
    steps.step("quickstart", |_| quickstart::run());
    steps.step("bench", |_| bench_smoke());
    steps.finish()
}

/// The expected compiler messages of the UI tests are those of one version.
fn toolchain() -> Outcome {
    let file = fs::read_to_string(workspace::root().join("rust-toolchain.toml"))?;
    let wanted = channel(&file).ok_or("rust-toolchain.toml names no channel")?;
    let output = Command::new("rustc").arg("--version").current_dir(workspace::root()).output()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if version.split_whitespace().nth(1) == Some(wanted) {
        Ok(version)
    } else {
        Err(format!("the compiler is `{version}`, rust-toolchain.toml wants {wanted}: run `rustup toolchain install`")
            .into())
    }
}

fn channel(toolchain_file: &str) -> Option<&str> {
    let line = toolchain_file.lines().find_map(|line| line.trim().strip_prefix("channel"))?;
    line.split('"').nth(1)
}

fn docs() -> Outcome {
    let mut command = workspace::cargo();
    command.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    finished(&mut command).map(|_| String::new())
}

/// One half of `cargo test --workspace`: with `--doc` the doc tests, else all others; so each test runs once.
fn tests(which: &[&str], tally: &mut Tally) -> Outcome {
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).args(which);
    let ended = child::run(&mut command)?;
    let note = format!("{} passed, {} failed", ended.output.tally.passed, ended.output.tally.failed);
    let ignored = ended.output.tally.ignored;
    tally.add(ended.output.tally);
    if !ended.status.success() {
        return Err(format!("{note}; cargo test ended with {}", ended.status).into());
    }
    if ignored > 0 {
        return Err(format!("{note}; {ignored} ignored: a test that does not run proves nothing").into());
    }
    Ok(note)
}

/// The variable that names the PostgreSQL server of the tests.
const SERVER: &str = "RELAYBUS_TEST_POSTGRES_URL";

/// The tests that need a PostgreSQL server: one that the environment names, or one of this run. The crash test restarts its
/// server, so it has one of its own.
fn postgres_tests(tally: &mut Tally) -> Outcome {
    postgres::install()?;
    postgres::install_pooler()?;
    let given = std::env::var(SERVER).ok().filter(|url| !url.is_empty());
    let server = if given.is_none() { Some(postgres::OfThisRun::start()?) } else { None };
    let url = given.as_deref().or(server.as_ref().map(postgres::OfThisRun::url)).unwrap_or_default();
    let parts: [&[&str]; 5] = [
        &["relaybus-stores", "--lib", "--test", "postgres", "--test", "postgres_counters"],
        &["relaybus-stores", "--test", "postgres_pooler"],
        &["relaybus-stores", "--test", "postgres_failures"],
        &["relaybus-tests", "--test", "crash_postgres"],
        &["quickstart", "--test", "quickstart", "postgres::"],
    ];
    let (mut all, mut failed) = (Tally::default(), false);
    for arguments in parts {
        let mut command = workspace::cargo();
        command.args(["test", "--features", "postgres", "--no-fail-fast", "--package"]).args(arguments);
        let ended = child::run(command.env(SERVER, url))?;
        failed |= !ended.status.success();
        all.add(ended.output.tally);
    }
    let note = format!("{} passed, {} failed", all.passed, all.failed);
    tally.add(all);
    if failed { Err(format!("{note}; cargo test failed").into()) } else { Ok(note) }
}

/// The store's tests on the newest server, where one can be had.
fn newest_postgres_tests(tally: &mut Tally) -> Outcome {
    let (server, version) = match postgres::OfThisRun::newest() {
        Ok(found) => found,
        Err(error) if postgres::newest::is_asked_for() => return Err(error),
        Err(error) => {
            let asked = postgres::newest::ASKED;
            return Ok(format!("left out: {error}; set {asked}=1 to make that a failure"));
        }
    };
    let mut command = workspace::cargo();
    command.args([
        "test",
        "--features",
        "postgres",
        "--no-fail-fast",
        "--package",
        "relaybus-stores",
        "--test",
        "postgres",
    ]);
    let ended = child::run(command.env(SERVER, server.url()))?;
    let note = format!("{version}: {} passed, {} failed", ended.output.tally.passed, ended.output.tally.failed);
    tally.add(ended.output.tally);
    if ended.status.success() { Ok(note) } else { Err(format!("{note}; cargo test failed").into()) }
}

/// One iteration of every benchmark, so that they cannot rot.
fn bench_smoke() -> Outcome {
    if !workspace::has_package("relaybus-bench")? {
        return Ok("the workspace has no benchmarks".to_owned());
    }
    bench::smoke()
}

fn cargo(arguments: &[&str]) -> Outcome {
    finished(workspace::cargo().args(arguments)).map(|_| String::new())
}

/// Runs a child that must succeed; answers its last line.
pub(crate) fn finished(command: &mut Command) -> Outcome {
    let ended = child::run(command)?;
    if ended.status.success() {
        return Ok(ended.output.last_line);
    }
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    Err(format!("`cargo {}` ended with {}", arguments.join(" "), ended.status).into())
}

#[cfg(test)]
mod tests {
    use super::channel;

    #[test]
    fn the_channel_is_read_from_the_toolchain_file() {
        assert_eq!(channel("[toolchain]\nchannel = \"1.95.0\"\nprofile = \"minimal\"\n"), Some("1.95.0"));
        assert_eq!(channel("[toolchain]\n"), None);
    }
}
