//! `cargo relaybus lint` on a package with planted faults: its output, its JSON and its exit codes.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p relaybus-cli` writes the expected outputs anew.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RELAYBUS: &str = env!("CARGO_BIN_EXE_relaybus");
const CARGO_RELAYBUS: &str = env!("CARGO_BIN_EXE_cargo-relaybus");

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn lint(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

fn shop(arguments: &[&str]) -> Output {
    let manifest = here("tests/fixtures/shop/Cargo.toml");
    let mut all = vec!["lint", "--manifest-path", manifest.to_str().unwrap()];
    all.extend_from_slice(arguments);
    lint(RELAYBUS, &all)
}

fn compare(name: &str, output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let path = here("tests/snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(here("tests/snapshots")).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == text, "{name} is out of date; the output is now:\n{text}");
    text
}

#[test]
fn planted_faults_are_found_and_shown() {
    let output = shop(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    compare("shop.txt", &output);
}

#[test]
fn every_planted_fault_and_nothing_else_is_found() {
    let output = shop(&["--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut found: Vec<(String, u64)> = Vec::new();
    for finding in report["findings"].as_array().unwrap() {
        found.push((finding["file"].as_str().unwrap().to_owned(), finding["line"].as_u64().unwrap()));
    }
    found.sort();
    found.dedup();
    let mut planted = Vec::new();
    for file in ["lib.rs", "clients/mod.rs", "orders/mod.rs", "orders/mail.rs", "plain.rs"] {
        let text = std::fs::read_to_string(here("tests/fixtures/shop/src").join(file)).unwrap();
        for (index, line) in text.lines().enumerate() {
            // The fault is on the line of the comment, or on the one below.
            let below = u64::from(line.trim_start().starts_with("// Fault"));
            if line.contains("// Fault") {
                planted.push((format!("src/{file}"), index as u64 + 1 + below));
            }
            if line.trim() == "// relaybus-lint: allow(external_call)" {
                planted.push((format!("src/{file}"), index as u64 + 1));
                planted.push((format!("src/{file}"), index as u64 + 2));
            }
        }
    }
    planted.sort();
    assert_eq!(found, planted);
}

#[test]
fn json_has_places_paths_and_counts() {
    let output = shop(&["--json"]);
    assert_eq!(output.status.code(), Some(1));
    compare("shop.json", &output);
}

#[test]
fn tests_are_left_out_unless_they_are_asked_for() {
    let with_tests = String::from_utf8(shop(&["--all-targets"]).stdout).unwrap();
    assert!(with_tests.contains("--> src/lib.rs:11:9"), "{with_tests}");
    assert!(!String::from_utf8(shop(&[]).stdout).unwrap().contains("src/lib.rs"));
}

#[test]
fn cargo_starts_it_as_a_subcommand() {
    let manifest = here("tests/fixtures/shop/Cargo.toml");
    let arguments = ["relaybus", "lint", "--manifest-path", manifest.to_str().unwrap()];
    let output = lint(CARGO_RELAYBUS, &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, shop(&[]).stdout);
}

#[test]
fn what_cannot_run_ends_with_2() {
    for arguments in [
        &["lint", "--manifest-path", "/nowhere/Cargo.toml"][..],
        &["lint", "--no-such-argument"],
        &["no-such-command"],
        &[],
    ] {
        let output = lint(RELAYBUS, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    let output = shop(&["--package", "nobody"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: the workspace has no package `nobody`\n");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(lint(RELAYBUS, &["--help"]).status.code(), Some(0));
}

#[test]
fn this_workspace_is_clean() {
    let manifest = here("../Cargo.toml");
    let output = lint(RELAYBUS, &["lint", "--all-targets", "--manifest-path", manifest.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("relaybus lint: 0 findings"), "{text}");
}
