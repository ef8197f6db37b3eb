//! What a comparison found, for people and as JSON.

use std::path::Path;

use relaybus::catalog::schema::{Change, Comparison, Severity};
use serde_json::{Value, json};

use super::described::Described;
use crate::Failure;

/// A catalog that was compared.
pub(super) struct Checked<'a> {
    catalog: &'a Described,
    file: String,
    /// Nothing where there was no snapshot.
    pub(super) comparison: Option<Comparison>,
    /// Whether the snapshot is the catalog's, letter by letter.
    pub(super) is_same: bool,
    against: Option<&'a str>,
}

impl<'a> Checked<'a> {
    pub(super) fn new(
        catalog: &'a Described,
        root: &Path,
        comparison: Option<Comparison>,
        is_same: bool,
        against: Option<&'a str>,
    ) -> Self {
        Self { catalog, file: relative(&catalog.file, root), comparison, is_same, against }
    }

    fn changes(&self) -> &[Change] {
        self.comparison.as_ref().map_or(&[], |comparison| &comparison.changes)
    }

    fn count(&self, severity: Severity) -> usize {
        self.changes().iter().filter(|change| change.severity == severity).count()
    }

    /// One word for scripts.
    fn state(&self) -> &'static str {
        match &self.comparison {
            Some(_) if self.catalog.is_gone() => "removed",
            None => "new",
            Some(_) if self.is_same => "unchanged",
            Some(comparison) if comparison.is_breaking() => "breaking",
            Some(_) => "behind",
        }
    }

    fn state_in_words(&self) -> String {
        match (self.state(), self.against) {
            ("new", None) => "has no snapshot yet: `cargo relaybus catalog update` writes it".to_owned(),
            ("new", Some(revision)) => format!("is new since {revision}"),
            ("removed", revision) => format!("is gone since {}", revision.unwrap_or_default()),
            ("unchanged", _) => "is unchanged".to_owned(),
            ("breaking", None) => "breaks what its snapshot promises".to_owned(),
            ("breaking", Some(revision)) => format!("breaks what it promised at {revision}"),
            (_, None) => "breaks nobody; `cargo relaybus catalog update` brings its snapshot up to date".to_owned(),
            (_, Some(revision)) => format!("breaks nobody since {revision}"),
        }
    }

    fn to_json(&self) -> Value {
        let changes: Vec<Value> = self.changes().iter().map(change_to_json).collect();
        json!({
            "package": self.catalog.package,
            "catalog": self.catalog.catalog,
            "file": self.file,
            "state": self.state(),
            "changes": changes,
        })
    }
}

fn change_to_json(change: &Change) -> Value {
    let affects: Vec<Value> =
        change.affects.iter().map(|(who, why)| json!({ "who": who.name(), "why": why })).collect();
    json!({ "severity": change.severity.name(), "event": change.event, "what": change.what, "affects": affects })
}

/// Prints what was found, and a line with the counts.
pub(super) fn print(checked: &[Checked<'_>], failing: usize) {
    for one in checked {
        let (package, name) = (&one.catalog.package, &one.catalog.catalog);
        let package = if package.is_empty() { String::new() } else { format!("{package}: ") };
        println!("{package}{name} {} ({})", one.state_in_words(), one.file);
        for change in one.changes() {
            println!("  {}", change.to_string().replace('\n', "\n  "));
        }
    }
    let sum = |severity| checked.iter().map(|one| one.count(severity)).sum::<usize>();
    println!(
        "relaybus catalog: {}, {failing} failing; {}, {} to roll out with care, {} compatible",
        counted(checked.len(), "catalog"),
        counted(sum(Severity::Breaking), "breaking change"),
        sum(Severity::Caution),
        sum(Severity::Compatible),
    );
}

/// Prints what was found as one JSON object.
pub(super) fn print_json(checked: &[Checked<'_>]) -> Result<(), Failure> {
    let catalogs: Vec<Value> = checked.iter().map(Checked::to_json).collect();
    println!("{}", serde_json::to_string_pretty(&json!({ "catalogs": catalogs }))?);
    Ok(())
}

/// A path as it is shown.
pub(super) fn relative(file: &Path, root: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

/// A number of things.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
