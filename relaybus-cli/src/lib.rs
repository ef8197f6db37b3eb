//! What the programs `relaybus` and `cargo relaybus` do. Each command is a module of `commands`.
//!
//! Exit codes, for scripts: 0 when all is well, 1 when a check found something, 2 when the command could not run.

mod commands;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Nothing is wrong.
const CLEAN: u8 = 0;
/// A check found something.
const FOUND: u8 = 1;
/// The command could not run.
const CANNOT_RUN: u8 = 2;

#[derive(Parser)]
#[command(name = "relaybus", version, about = "Checks applications of relaybus", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find calls to other services, and publishes outside of the transaction, inside transactions.
    Lint(commands::lint::Arguments),
    /// Compare catalogs with their committed snapshots, write these, and export schemas and AsyncAPI documents.
    Catalog(commands::catalog::Arguments),
}

/// How a command ended.
enum Outcome {
    Clean,
    Found,
}

/// Why a command could not run.
type Failure = Box<dyn std::error::Error>;

/// Runs the command that `arguments` name; the first is the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            drop(error.print());
            return ExitCode::from(if error.use_stderr() { CANNOT_RUN } else { CLEAN });
        }
    };
    let outcome = match arguments.command {
        Command::Lint(arguments) => commands::lint::run(&arguments),
        Command::Catalog(arguments) => commands::catalog::run(&arguments),
    };
    match outcome {
        Ok(Outcome::Clean) => ExitCode::from(CLEAN),
        Ok(Outcome::Found) => ExitCode::from(FOUND),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(CANNOT_RUN)
        }
    }
}
