//! What the compiler says about wrong uses of the macros: every case's complete output is compared.
//!
//! `UI_CASE=consumer/fail/not_async.rs` runs one case, `TRYBUILD=overwrite` writes the outputs anew: read them then.

use std::process::Command;

/// The outputs are this compiler's, as the repository pins it.
const TOOLCHAIN: &str = "rustc 1.95.0 ";

#[test]
fn wrong_uses() {
    let version = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())).arg("--version").output();
    let version = String::from_utf8(version.unwrap().stdout).unwrap();
    assert!(version.starts_with(TOOLCHAIN), "the outputs are those of `{TOOLCHAIN}`, this is `{version}`");

    let cases = trybuild::TestCases::new();
    match std::env::var("UI_CASE") {
        Ok(case) => cases.compile_fail(format!("tests/{case}")),
        // One build: the cases of all macros together.
        Err(_) => cases.compile_fail("tests/*/fail/*.rs"),
    }
}
