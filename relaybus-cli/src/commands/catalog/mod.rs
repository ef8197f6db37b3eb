//! `cargo relaybus catalog`: catalogs as contracts between teams.
//!
//! A catalog is a Rust type, so only a program that has it can describe it. Each package with catalogs has one such program
//! already: the test that `relaybus_testing::catalog_snapshots!` writes. This command runs those tests and has them write
//! down what they have (`described`); it compares that with the committed files, or with those of an earlier revision
//! (`check`), writes the files (`update`), or hands out the schemas (`export`).

mod described;
mod earlier;
mod revision;
mod show;

use std::fs;
use std::path::{Path, PathBuf};

use relaybus::catalog::schema::{CatalogSnapshot, Comparison, Severity};

use crate::commands::packages::{self, Workspace};
use crate::{Failure, Outcome};
use described::Described;
use earlier::Earlier;
use show::Checked;

/// The arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Fail when a catalog breaks what its committed snapshot promises.
    Check {
        #[command(flatten)]
        which: Which,
        /// Compare with the snapshots of this revision of git, the last release for example, in place of the files.
        #[arg(long, value_name = "REVISION")]
        against: Option<String>,
        /// Fail also on changes that need a rollout in the right order, and on snapshots that are not up to date.
        #[arg(long)]
        strict: bool,
        /// Print one JSON object in place of text.
        #[arg(long)]
        json: bool,
    },
    /// Write the snapshots: what is new, and what breaks nobody.
    Update {
        #[command(flatten)]
        which: Which,
        /// Write those too that break what the file promised.
        #[arg(long)]
        accept: bool,
    },
    /// Print the schemas of a catalog, or write those of all catalogs into a folder.
    Export {
        /// What to print.
        #[arg(value_enum)]
        format: Format,
        #[command(flatten)]
        which: Which,
        /// Write one file a catalog into this folder.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
}

/// The catalogs to look at.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// The manifest of the package or workspace. Defaults to the one of the current folder.
    #[arg(long, value_name = "PATH")]
    manifest_path: Option<PathBuf>,
    /// Only the catalogs of this package; may be repeated.
    #[arg(long, short, value_name = "NAME")]
    package: Vec<String>,
    /// Only the catalog of this name; may be repeated.
    #[arg(long, value_name = "NAME")]
    catalog: Vec<String>,
    /// What else `cargo test` is given: `-- --features eu --offline`.
    #[arg(last = true, value_name = "ARGUMENTS")]
    cargo: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// The JSON schema of the whole catalog.
    JsonSchema,
    /// An AsyncAPI 3 document.
    Asyncapi,
    /// The snapshot, as `update` writes it.
    Snapshot,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    match &arguments.action {
        Action::Check { which, against, strict, json } => check(which, against.as_deref(), *strict, *json),
        Action::Update { which, accept } => update(which, *accept),
        Action::Export { format, which, out } => export(which, *format, out.as_deref()),
    }
}

fn found(which: &Which) -> Result<(Workspace, Vec<Described>), Failure> {
    let workspace = packages::read(which.manifest_path.as_deref())?;
    let mut catalogs = described::run(&workspace, which)?;
    let unknown = which.catalog.iter().find(|name| catalogs.iter().all(|known| known.catalog != **name));
    if let Some(unknown) = unknown {
        return Err(
            format!("no test has the catalog `{unknown}`: add it to a `relaybus_testing::catalog_snapshots!`").into()
        );
    }
    catalogs.retain(|known| which.catalog.is_empty() || which.catalog.contains(&known.catalog));
    Ok((workspace, catalogs))
}

/// The text of a catalog's file; nothing where it is new.
fn committed(catalog: &Described) -> Result<Option<String>, Failure> {
    match fs::read_to_string(&catalog.file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read `{}`: {error}", catalog.file.display()).into()),
    }
}

/// Whether a file has the snapshot, whatever line breaks a checkout has made of its own.
fn is_same(text: Option<&str>, catalog: &Described) -> bool {
    text.is_some_and(|text| text.replace("\r\n", "\n") == catalog.snapshot)
}

fn compared(catalog: &Described, text: &str) -> Result<Comparison, Failure> {
    let said = |error: relaybus::Error| format!("`{}`: {error}", catalog.file.display());
    let now = CatalogSnapshot::parse(&catalog.snapshot).map_err(said)?;
    Ok(CatalogSnapshot::parse(text).map_err(said)?.compare(&now))
}

fn check(which: &Which, against: Option<&str>, strict: bool, json: bool) -> Result<Outcome, Failure> {
    let (workspace, catalogs) = found(which)?;
    let mut earlier = against.map(|revision| Earlier::read(revision, &workspace, &catalogs, which)).transpose()?;
    let mut checked = Vec::new();
    for catalog in &catalogs {
        let text = match &mut earlier {
            Some(earlier) => earlier.text_of(catalog)?,
            None => committed(catalog)?,
        };
        let comparison = text.as_deref().map(|text| compared(catalog, text)).transpose()?;
        checked.push(Checked::new(catalog, &workspace.root, comparison, is_same(text.as_deref(), catalog), against));
    }
    let gone = earlier.map(|earlier| earlier.gone()).transpose()?.unwrap_or_default();
    for (catalog, comparison) in &gone {
        checked.push(Checked::new(catalog, &workspace.root, Some(comparison.clone()), false, against));
    }
    let fails = |one: &Checked<'_>| match one.comparison.as_ref() {
        Some(comparison) => {
            let worst = comparison.worst();
            let is_behind = against.is_none() && !one.is_same;
            worst == Some(Severity::Breaking) || (strict && (worst == Some(Severity::Caution) || is_behind))
        }
        // A catalog that the revision did not have breaks nobody.
        None => against.is_none(),
    };
    let failing = checked.iter().filter(|one| fails(one)).count();
    if json {
        show::print_json(&checked)?
    } else {
        show::print(&checked, failing)
    }
    Ok(if failing == 0 { Outcome::Clean } else { Outcome::Found })
}

fn update(which: &Which, accept: bool) -> Result<Outcome, Failure> {
    let (workspace, catalogs) = found(which)?;
    let (mut refused, mut written) = (Vec::new(), 0);
    for catalog in &catalogs {
        let text = committed(catalog)?;
        let comparison = match &text {
            Some(text) if !accept => Some(compared(catalog, text)?),
            _ => None,
        };
        let is_same = is_same(text.as_deref(), catalog);
        if comparison.as_ref().is_some_and(Comparison::is_breaking) {
            refused.push(Checked::new(catalog, &workspace.root, comparison, is_same, None));
        } else if !is_same {
            write(&catalog.file, &catalog.snapshot)?;
            println!("wrote {}", show::relative(&catalog.file, &workspace.root));
            written += 1;
        }
    }
    if refused.is_empty() {
        println!("relaybus catalog: {} of {} written", written, show::counted(catalogs.len(), "snapshot"));
        return Ok(Outcome::Clean);
    }
    show::print(&refused, refused.len());
    println!("not written; `--accept` writes them, where nobody relies on the old contract any more");
    Ok(Outcome::Found)
}

fn export(which: &Which, format: Format, out: Option<&Path>) -> Result<Outcome, Failure> {
    let (_, catalogs) = found(which)?;
    let text = |catalog: &Described| match format {
        Format::JsonSchema => format!("{:#}\n", catalog.json_schema),
        Format::Asyncapi => format!("{:#}\n", catalog.asyncapi),
        Format::Snapshot => catalog.snapshot.clone(),
    };
    let ending = match format {
        Format::JsonSchema => "schema",
        Format::Asyncapi => "asyncapi",
        Format::Snapshot => "snapshot",
    };
    let twice =
        catalogs.iter().enumerate().find(|(at, one)| catalogs[..*at].iter().any(|it| it.catalog == one.catalog));
    if let (Some(_), Some((_, twice))) = (out, twice) {
        let name = &twice.catalog;
        return Err(format!(
            "several catalogs are called `{name}`, and their files would be too: choose one with `--package`"
        )
        .into());
    }
    match (out, catalogs.as_slice()) {
        (Some(folder), catalogs) => {
            for catalog in catalogs {
                let path = folder.join(format!("{}.{ending}.json", catalog.catalog));
                write(&path, &text(catalog))?;
                println!("wrote {}", path.display());
            }
        }
        (None, [catalog]) => print!("{}", text(catalog)),
        (None, catalogs) => {
            let names: Vec<String> = catalogs.iter().map(|catalog| format!("`{}`", catalog.catalog)).collect();
            let names = names.join(", ");
            return Err(format!(
                "there are several catalogs, {names}: choose one with `--catalog` or `--package`, or give `--out`"
            )
            .into());
        }
    }
    Ok(Outcome::Clean)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| format!("cannot write `{}`: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(cannot)?;
    }
    fs::write(path, text).map_err(cannot)?;
    Ok(())
}
