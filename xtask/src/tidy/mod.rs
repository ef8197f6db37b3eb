//! `cargo xtask tidy`: house style, measured over the files of the repository.
//!
//! It fails only on what is never right; sizes, names and the like are reported, for a person to judge. Rust files are
//! first split into code and comments (`source`), so that a rule never trips over a word in a string.

mod attributes;
mod finding;
mod functions;
mod manifests;
mod plain;
mod rust;
mod size;
mod sleeps;
mod source;
mod stores;

use std::fs;
use std::io;
use std::path::Path;

use crate::{Outcome, workspace};
use finding::{Finding, Verdict};
use source::Source;

/// Folders that hold nothing written by hand: builds, new outputs of UI tests, data of examples.
const SKIPPED: [&str; 4] = [".git", "target", "wip", "data"];

/// Endings of the files that people write.
const ENDINGS: [&str; 10] = ["rs", "toml", "md", "yaml", "yml", "sql", "sh", "stderr", "stdout", "json"];

/// Files without a telling ending.
const NAMES: [&str; 5] = [".ci/run", ".gitignore", "Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT"];

/// A file of the repository: its path from the root with `/`, and its text.
struct File {
    path: String,
    text: String,
}

/// Measures the repository and prints what it found.
///
/// # Errors
///
/// When a file cannot be read, or something is never right.
pub(crate) fn run() -> Outcome {
    let files = read(workspace::root())?;
    let sources: Vec<Source> = files.iter().filter(|file| file.path.ends_with(".rs")).map(parse).collect();
    let mut findings = check(&files, &sources);
    findings.sort();
    let (failures, reports): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| finding.verdict == Verdict::Fail);
    reports.iter().chain(&failures).for_each(|finding| println!("{finding}"));
    println!("{}", size::statistics(&sources));
    if failures.is_empty() {
        return Ok(format!("tidy: {} files, {} things to look at", files.len(), reports.len()));
    }
    Err(format!("{} things that are never right, see the lines that start with FAIL", failures.len()).into())
}

fn parse(file: &File) -> Source {
    Source::parse(&file.path, &file.text)
}

fn check(files: &[File], sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let msrv = files.iter().find(|file| file.path == "Cargo.toml").and_then(|file| manifests::msrv(&file.text));
    for file in files {
        plain::check(&file.path, &file.text, &mut findings);
        manifests::check(&file.path, &file.text, msrv, &mut findings);
    }
    for source in sources {
        rust::check(source, &mut findings);
        attributes::check(source, &mut findings);
        sleeps::check(source, &mut findings);
        size::check(source, &mut findings);
    }
    stores::check(files.iter().map(|file| file.path.as_str()), &mut findings);
    findings
}

fn read(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    read_folder(root, "", &mut files)?;
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(files)
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                read_folder(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file() && is_text(&path) {
            let text = fs::read_to_string(entry.path())
                .map_err(|error| io::Error::new(error.kind(), format!("cannot read `{path}`: {error}")))?;
            files.push(File { path, text });
        }
    }
    Ok(())
}

fn is_text(path: &str) -> bool {
    NAMES.contains(&path) || path.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::{File, Source, check, finding::Verdict, is_text};

    #[test]
    fn text_is_told_by_name() {
        for path in ["relaybus/src/lib.rs", "Cargo.toml", ".ci/run", "relaybus-stores/src/sqlite/sql/claim.sql"] {
            assert!(is_text(path), "{path}");
        }
        for path in ["store.db", "run", "events.jsonl", "logo.png"] {
            assert!(!is_text(path), "{path}");
        }
    }

    #[test]
    fn a_small_tidy_repository_has_no_findings() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file("Cargo.toml", "[workspace]\n[workspace.package]\nrust-version = \"1.94\"\n"),
            file("README.md", "MSRV: 1.94.\n"),
            file("relaybus/Cargo.toml", "[package]\nname = \"relaybus\"\n\n[lints]\nworkspace = true\n"),
            file("relaybus/src/lib.rs", "//! The bus.\n\n/// Adds one.\npub fn one(n: u8) -> u8 {\n    n + 1\n}\n"),
        ];
        let sources = [Source::parse(&files[3].path, &files[3].text)];
        assert!(check(&files, &sources).is_empty());
    }

    #[test]
    fn every_group_of_rules_is_asked() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let long = format!("fn long() {{\n{}}}\n", "    step();\n".repeat(80));
        let bad = "#[ignore]\nfn t() { std::thread::sleep(d); }\n".to_owned() + &long;
        let files = [
            file("Cargo.toml", "rust-version = \"1.94\"\n"),
            file("README.md", concat!("MSRV 1.80, built in /ro", "ot/x\n")),
            file("relaybus-stores/src/sqlite/claim.rs", "//! Claims.\n"),
            file("relaybus-stores/src/postgres/append.rs", "//! Appends.\n"),
            file("tests/tests/order.rs", &bad),
        ];
        let sources: Vec<Source> = files[2..].iter().map(super::parse).collect();
        let findings = check(&files, &sources);
        let failed = |rule: &str| findings.iter().any(|f| f.rule == rule && f.verdict == Verdict::Fail);
        for rule in ["module-doc", "ignored-test", "sleep", "machine-path", "msrv", "stores-mirror"] {
            assert!(failed(rule), "{rule}");
        }
        assert!(findings.iter().any(|f| f.rule == "long-function" && f.verdict == Verdict::Report));
    }
}
