//! Rules for every text file: nothing that is true on one machine only, no marks of unfinished work.

use super::finding::Finding;
use super::rust::is_ignored_fence;
use super::source::{Source, words};

/// Words that mark unfinished work: it is finished before it is merged, or it is an issue.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Folders in which people and build machines keep their things.
const MACHINE_FOLDERS: [&str; 5] = [
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
    concat!(":\\Us", "ers\\"),
];

/// Names with which hosts of package registries and of private networks begin or end.
const HOST_STARTS: [&str; 7] =
    ["index.crates.", "static.crates.", "registry.", "mirror", "artifactory", "nexus", "proxy."];
const HOST_ENDS: [&str; 4] = [".internal", ".corp", ".lan", ".intranet"];

/// The only source that the lock file may name.
const PUBLIC_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks one file.
pub(crate) fn check(path: &str, text: &str, findings: &mut Vec<Finding>) {
    if path == "Cargo.lock" {
        return lock_file(path, text, findings);
    }
    for (index, line) in text.lines().enumerate() {
        if names_machine_folder(line) {
            let text = "a path of one machine: write it relative to the repository, or ask the system for it";
            findings.push(Finding::fail(path, index, "machine-path", text));
        }
        if let Some(host) = hosts(line).find(|host| is_private(host)) {
            let text = format!("`{host}` is a registry or a private host: settings of a machine stay on the machine");
            findings.push(Finding::fail(path, index, "host", text));
        }
        if path.ends_with(".md") && is_ignored_fence(line) {
            let text = "an example marked `ignore` is never compiled: make it compile, or mark it `no_run` or `text`";
            findings.push(Finding::fail(path, index, "ignored-example", text));
        }
    }
    marks(path, text, findings);
}

fn lock_file(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        let source = line.strip_prefix("source = ").map(|source| source.trim_matches('"'));
        if source.is_some_and(|source| source != PUBLIC_REGISTRY) {
            let text = format!("`{line}` is not the public registry: others cannot build from it");
            findings.push(Finding::fail(path, index, "host", text));
        }
    }
}

fn marks(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let comments: Vec<String> = if path.ends_with(".rs") {
        Source::parse(path, text).lines.into_iter().map(|line| line.comment).collect()
    } else {
        text.lines().map(str::to_owned).collect()
    };
    for (index, comment) in comments.iter().enumerate() {
        if let Some(mark) = MARKS.iter().find(|mark| words(comment, mark).next().is_some()) {
            let text = format!("`{mark}` marks unfinished work: finish it, or write an issue");
            findings.push(Finding::fail(path, index, "unfinished", text));
        }
    }
}

fn names_machine_folder(line: &str) -> bool {
    let continues = |character: char| character.is_alphanumeric() || "._-}*)>".contains(character);
    MACHINE_FOLDERS.iter().any(|folder| {
        line.match_indices(folder).any(|(at, _)| {
            let before = line.get(..at).and_then(|text| text.chars().next_back());
            folder.starts_with(':') || !before.is_some_and(continues)
        })
    })
}

/// The hosts of the web addresses in a line.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    line.split("://").skip(1).map(|rest| {
        let address = rest.split(|character: char| character == '/' || !character.is_ascii_graphic()).next();
        let address = address.unwrap_or_default();
        let host = address.rsplit('@').next().unwrap_or_default();
        host.split(|character: char| !(character.is_ascii_alphanumeric() || "-.".contains(character)))
            .next()
            .unwrap_or("")
    })
}

fn is_private(host: &str) -> bool {
    HOST_STARTS.iter().any(|start| host.starts_with(start)) || HOST_ENDS.iter().any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::check;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let mut findings = Vec::new();
        check(path, text, &mut findings);
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn paths_of_one_machine_fail() {
        for path in [
            concat!("cd /ro", "ot/relaybus"),
            concat!("\"/ho", "me/ann/store.db\""),
            concat!("file:///Us", "ers/ann"),
            concat!("at /wo", "rk/main"),
            concat!("C:\\Us", "ers\\ann"),
        ] {
            assert_eq!(rules("README.md", path), ["machine-path"], "{path}");
        }
        for path in [
            concat!("https://example.org/ho", "me/page"),
            concat!("$HOME/wo", "rk/x"),
            "/var/lib/postgresql",
            "/homes",
            concat!("target/wo", "rk/"),
        ] {
            assert!(rules("README.md", path).is_empty(), "{path}");
        }
    }

    #[test]
    fn registries_and_private_hosts_fail() {
        for address in [
            concat!("sparse+https:", "//index.", "crates", ".io/"),
            concat!("https:", "//mirror-1.example.org/simple"),
            concat!("postgres:", "//app:secret@db.corp:5432/app"),
            concat!("\"http:", "//packages.internal\""),
        ] {
            assert_eq!(rules("a.toml", address), ["host"], "{address}");
        }
        for address in
            ["https://crates.io/crates/relaybus", "https://docs.rs/x", "sqlite://store.db", "a :// b", "http://"]
        {
            assert!(rules("a.toml", address).is_empty(), "{address}");
        }
    }

    #[test]
    fn the_lock_file_names_the_public_registry_only() {
        let public = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
        assert!(rules("Cargo.lock", public).is_empty());
        assert_eq!(rules("Cargo.lock", "source = \"git+https://github.com/a/b#c\"\n"), ["host"]);
    }

    #[test]
    fn unfinished_work_is_found_in_comments() {
        for mark in super::MARKS {
            assert_eq!(rules("a.rs", &format!("//! A.\nfn a() {{}} // {mark}: later\n")), ["unfinished"], "{mark}");
            assert_eq!(rules("a.sql", &format!("-- {mark}\n")), ["unfinished"], "{mark}");
            assert!(rules("a.rs", &format!("const A: &str = \"{mark}\";\n")).is_empty(), "{mark}");
            assert!(rules("a.rs", &format!("// my{mark}s\n")).is_empty(), "{mark}");
        }
    }

    #[test]
    fn examples_in_markdown_compile_too() {
        assert_eq!(rules("README.md", "```rust,ignore\n"), ["ignored-example"]);
        assert!(rules("README.md", "```rust\n").is_empty());
    }
}
