//! The program that Cargo starts for `cargo relaybus`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Cargo repeats its subcommand as the first argument.
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == "relaybus") {
        arguments.remove(1);
    }
    relaybus_cli::run(arguments)
}
