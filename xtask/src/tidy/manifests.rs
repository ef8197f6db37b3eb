//! Rules for manifests and for the versions that texts state.

use super::finding::Finding;

/// The `rust-version` of the root manifest.
pub(crate) fn msrv(root_manifest: &str) -> Option<&str> {
    let line = root_manifest.lines().find(|line| line.trim_start().starts_with("rust-version"))?;
    line.split('"').nth(1)
}

/// Checks one file.
pub(crate) fn check(path: &str, text: &str, msrv: Option<&str>, findings: &mut Vec<Finding>) {
    if path.ends_with("Cargo.toml") && has_line(text, "[package]") && !inherits_lints(text) {
        let text = "the package does not take the workspace's lints: add `[lints]` with `workspace = true`";
        findings.push(Finding::fail(path, 0, "lints", text).of_whole());
    }
    let Some(msrv) = msrv else { return };
    for (index, line) in text.lines().enumerate() {
        let stated = path.ends_with(".md") && path != "CHANGELOG.md" && line.contains("MSRV");
        if stated && versions(line).any(|_| true) && !versions(line).any(|version| version == msrv) {
            let text = format!("the MSRV is {msrv} in the root manifest: say the same here");
            findings.push(Finding::fail(path, index, "msrv", text));
        }
    }
}

fn has_line(text: &str, wanted: &str) -> bool {
    text.lines().any(|line| line.trim() == wanted)
}

fn inherits_lints(text: &str) -> bool {
    let section = text.lines().skip_while(|line| line.trim() != "[lints]").skip(1);
    let mut section = section.take_while(|line| !line.trim_start().starts_with('['));
    section.any(|line| line.replace(' ', "") == "workspace=true") || has_line(text, "lints.workspace = true")
}

/// The Rust versions in a line: `1.94`, `1.95.0`.
fn versions(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|character: char| !(character.is_ascii_digit() || character == '.'));
    words.map(|word| word.trim_matches('.')).filter(|word| word.starts_with("1.") && word.len() > 2)
}

#[cfg(test)]
mod tests {
    use super::{check, msrv};

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let mut findings = Vec::new();
        check(path, text, Some("1.94"), &mut findings);
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn every_package_takes_the_lints_of_the_workspace() {
        assert!(rules("a/Cargo.toml", "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n").is_empty());
        assert!(rules("Cargo.toml", "[workspace]\nmembers = []\n").is_empty());
        assert_eq!(rules("a/Cargo.toml", "[package]\nname = \"a\"\n"), ["lints"]);
        assert_eq!(rules("a/Cargo.toml", "[package]\n[lints]\n[features]\nworkspace = true\n"), ["lints"]);
    }

    #[test]
    fn texts_state_the_msrv_of_the_manifest() {
        assert_eq!(msrv("[workspace.package]\n# MSRV\nrust-version = \"1.94\"\n"), Some("1.94"));
        assert_eq!(rules("README.md", "The MSRV is 1.90.\n"), ["msrv"]);
        for line in
            ["The MSRV is 1.94.", "MSRV 1.94, pinned toolchain 1.95.0", "Raising the MSRV is a minor change", "1.80"]
        {
            assert!(rules("README.md", line).is_empty(), "{line}");
        }
        assert!(rules("CHANGELOG.md", "The MSRV was 1.90.\n").is_empty(), "history may");
    }
}
