//! The program `relaybus`.

use std::process::ExitCode;

fn main() -> ExitCode {
    relaybus_cli::run(std::env::args_os())
}
