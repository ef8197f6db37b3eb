//! The command line.

use std::path::PathBuf;

pub const HELP: &str = "\
Imports webhooks into a store, handles them, and checks the result.

Usage: cargo run -p quickstart [-- OPTIONS]

  --file PATH    webhooks to import, one JSON object a line: {\"type\": .., \"payload\": ..}
                 [default: 91 webhooks that come with the program]
  --store URL    sqlite://path, memory: or, in a build with `--features postgres`, postgres://user:password@host/database
                 [default: sqlite://quickstart.db]
  --times N      import the file N times [default: 1]
  --workers N    run the handlers in N processes of their own [default: 0, in this process]
  --json         print the report as one JSON object, on the last line
  --help         print this";

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Options {
    pub file: Option<PathBuf>,
    pub store: String,
    pub times: usize,
    pub workers: usize,
    pub json: bool,
    pub help: bool,
    /// Not for people: this process is one of `--workers`.
    pub worker: bool,
}

impl Options {
    /// Reads the arguments of the process.
    pub fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            file: None,
            store: "sqlite://quickstart.db".to_owned(),
            times: 1,
            workers: 0,
            json: false,
            help: false,
            worker: false,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value: see `--help`"));
            match argument.as_str() {
                "--file" => options.file = Some(value()?.into()),
                "--store" => options.store = value()?,
                "--times" => options.times = number(&argument, &value()?, 1)?,
                "--workers" => options.workers = number(&argument, &value()?, 0)?,
                "--json" => options.json = true,
                "--help" | "-h" => options.help = true,
                "--worker" => options.worker = true,
                _ => return Err(format!("`{argument}` is not an option: see `--help`")),
            }
        }
        if options.workers > 0 && options.store == "memory:" {
            return Err("`memory:` is the memory of one process: leave `--workers` out, or use `sqlite://path`".into());
        }
        Ok(options)
    }
}

fn number(option: &str, value: &str, least: usize) -> Result<usize, String> {
    match value.parse() {
        Ok(number) if (least..=100_000).contains(&number) => Ok(number),
        _ => Err(format!("`{option} {value}` is not possible: expected a number from {least} to 100000")),
    }
}
