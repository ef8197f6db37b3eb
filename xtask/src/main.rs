//! The commands of the project, started as `cargo xtask <command>`; `USAGE` below lists them.
//!
//! People and build servers run the same command, so that what passes here passes there.
#![allow(
    clippy::disallowed_methods,
    reason = "a build tool measures real time and runs real threads and processes; nothing of it runs under virtual time"
)]

mod bench;
mod child;
mod cluster;
mod features;
mod leftovers;
mod licences;
mod packages;
mod peers;
mod postgres;
mod quickstart;
mod services;
mod steps;
mod tally;
mod test_command;
mod tidy;
mod workspace;

use std::process::ExitCode;

/// What a command answers: a note for the person who ran it (empty if there is nothing to say), or why it failed.
type Outcome = Result<String, Box<dyn std::error::Error>>;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [--quick|--postgres]   everything a change must pass; --quick leaves out formatting, lints and docs, --postgres is
                              what needs a PostgreSQL server and nothing else
  ci                          the same as test
  tidy                        house style: fails on what is never right, reports the rest
  licences                    licence and origin of every dependency
  services up|down|status     the servers that tests talk to
  bench [arguments]           the benchmarks, in the release profile";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["test" | "ci"] => test_command::run(test_command::Extent::Whole),
        ["test" | "ci", "--quick"] => test_command::run(test_command::Extent::Quick),
        ["test", "--postgres"] => test_command::run(test_command::Extent::Postgres),
        ["tidy"] => tidy::run(),
        ["licences"] => licences::run(),
        ["services", action] => services::run(action),
        ["bench", rest @ ..] => bench::run(rest),
        ["help" | "--help" | "-h"] => Ok(USAGE.to_owned()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(note) => {
            if !note.is_empty() {
                println!("{note}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
