//! `cargo relaybus lint`: what must not happen inside a transaction, over whole crates.
//!
//! The macros see one function and its file. This command reads all files of a package, starts at every transaction and
//! follows the calls through functions and methods of the same package (`reach`). What it finds is an `Finding`, printed
//! the way the compiler prints errors (`show`) or as JSON.

mod allow;
mod reach;
mod show;
mod sources;

use std::path::PathBuf;

use serde::Serialize;

use crate::commands::packages::{self, Package};
use crate::{Failure, Outcome};
use sources::Sources;

/// The arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The manifest of the package or workspace. Defaults to the one of the current folder.
    #[arg(long, value_name = "PATH")]
    manifest_path: Option<PathBuf>,
    /// Only this package of the workspace; may be repeated.
    #[arg(long, short, value_name = "NAME")]
    package: Vec<String>,
    /// Tests and benchmarks too.
    #[arg(long)]
    all_targets: bool,
    /// Print one JSON object in place of text.
    #[arg(long)]
    json: bool,
}

/// A rule of the lint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    /// A call to another service inside a transaction.
    ExternalCall,
    /// An event published outside of the transaction whose handle is in scope.
    PublishDetached,
    /// Something is allowed without a reason.
    MissingReason,
}

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Self::ExternalCall => "external_call",
            Self::PublishDetached => "publish_detached",
            Self::MissingReason => "missing_reason",
        }
    }
}

/// Where something is: lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct Place {
    /// Relative to the folder of the workspace.
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) end_line: usize,
    pub(crate) end_column: usize,
}

/// Something that must not happen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Finding {
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) rule: Rule,
    pub(crate) message: String,
    /// From the transaction to the function that has it.
    pub(crate) path: Vec<Step>,
    /// What to do.
    pub(crate) help: Vec<String>,
}

/// A step on the way from a transaction to a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Step {
    pub(crate) text: String,
    #[serde(flatten)]
    pub(crate) place: Place,
}

#[derive(Serialize)]
struct Report<'a> {
    findings: &'a [Finding],
    packages: usize,
    files: usize,
    transactions: usize,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let workspace = packages::read(arguments.manifest_path.as_deref())?;
    let packages: Vec<&Package> = workspace.named(&arguments.package)?;
    let (mut findings, mut files, mut transactions) = (Vec::new(), 0, 0);
    for package in &packages {
        for target in package.targets.iter().filter(|target| arguments.all_targets || !target.is_test) {
            let sources = Sources::read(target, package, &workspace.root, arguments.all_targets)?;
            let (found, started) = reach::findings(&sources);
            findings.extend(found);
            files += sources.len();
            transactions += started;
        }
    }
    // A file that several targets share is reported once.
    findings.sort();
    findings.dedup();
    let report = Report { findings: &findings, packages: packages.len(), files, transactions };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show::print(&report, &workspace.root)?;
    }
    Ok(if findings.is_empty() { Outcome::Clean } else { Outcome::Found })
}
