//! Rules for the text of Rust files: the module doc, doc examples, re-exports, cancel safety, commented-out code.

use super::finding::Finding;
use super::source::{Line, Source, words};

/// Checks one file.
pub(crate) fn check(source: &Source, findings: &mut Vec<Finding>) {
    module_doc(source, findings);
    doc_examples(source, findings);
    glob_reexports(source, findings);
    cancel_safety(source, findings);
    commented_out(source, findings);
}

/// The first line says what the file does.
fn module_doc(source: &Source, findings: &mut Vec<Finding>) {
    let first = source.lines.first().map_or("", |line| line.comment.trim());
    if first.strip_prefix("//!").is_none_or(|text| text.trim().is_empty()) {
        let text = "the first line is no `//!` doc: say what the file does and where it stands in the flow";
        findings.push(Finding::fail(&source.path, 0, "module-doc", text));
    }
}

/// Every doc example compiles.
fn doc_examples(source: &Source, findings: &mut Vec<Finding>) {
    for (index, line) in source.lines.iter().enumerate() {
        if line.doc().is_some_and(is_ignored_fence) {
            let text = "an example marked `ignore` is never compiled: make it compile, or mark it `no_run` or `text`";
            findings.push(Finding::fail(&source.path, index, "ignored-example", text));
        }
    }
}

/// Whether a line of Markdown opens a code block that is marked `ignore`.
pub(crate) fn is_ignored_fence(line: &str) -> bool {
    let line = line.trim_start();
    let Some(info) = line.strip_prefix("```").or_else(|| line.strip_prefix("~~~")) else { return false };
    info.split([',', ' ', '{', '}', '`', '~']).any(|word| word == "ignore" || word.starts_with("ignore-"))
}

/// One can list the public interface: no `pub use a::*` outside `prelude` and `__private`.
fn glob_reexports(source: &Source, findings: &mut Vec<Finding>) {
    let allowed = ["prelude", "__private"];
    if allowed.iter().any(|name| source.path.contains(name)) {
        return;
    }
    let mut until = 0;
    for (index, line) in source.lines.iter().enumerate() {
        if allowed.iter().any(|name| line.code.contains(&format!("mod {name} "))) {
            until = source.block_end(index).unwrap_or(index);
        }
        if index >= until && line.code.trim_start().starts_with("pub use ") && line.code.contains("::*") {
            let text = "a glob re-export hides what is public: name the items";
            findings.push(Finding::report(&source.path, index, "glob-re-export", text));
        }
    }
}

/// Public async functions of the libraries say what a dropped future leaves behind. The test kit's are test cases.
fn cancel_safety(source: &Source, findings: &mut Vec<Finding>) {
    let library = source.path.starts_with("relaybus") && source.path.contains("/src/");
    if !library || source.path.starts_with("relaybus-testing/") {
        return;
    }
    let unit_tests = source.unit_tests();
    for (index, line) in source.lines.iter().enumerate() {
        let public = line.code.trim_start().starts_with("pub async fn ") && unit_tests.get(index) == Some(&false);
        if public && !source.heading(index).any(|line| line.doc() == Some("# Cancel safety")) {
            let text = "a public async function without `# Cancel safety`: say what a dropped future leaves behind";
            findings.push(Finding::report(&source.path, index, "cancel-safety", text));
        }
    }
}

/// Code that is not code: git remembers it better.
fn commented_out(source: &Source, findings: &mut Vec<Finding>) {
    for (index, line) in source.lines.iter().enumerate() {
        if line.is_comment() && looks_like_code(line) {
            let text = "this looks like commented-out code: delete it";
            findings.push(Finding::report(&source.path, index, "commented-out", text));
        }
    }
}

fn looks_like_code(line: &Line) -> bool {
    let comment = line.comment.trim();
    let Some(text) = comment.strip_prefix("//").filter(|text| !text.starts_with(['/', '!'])) else { return false };
    let statement = text.ends_with(';') && text.contains(['(', '=']) && !text.contains('`');
    statement || text.ends_with('{') && words(text, "fn").next().is_some()
}

#[cfg(test)]
mod tests {
    use super::{Source, check, is_ignored_fence};

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let mut findings = Vec::new();
        check(&Source::parse(path, text), &mut findings);
        findings.into_iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn a_file_starts_with_its_doc() {
        assert!(rules("a.rs", "//! Claims lanes.\nfn a() {}\n").is_empty());
        for text in ["", "fn a() {}\n", "// Claims lanes.\n", "//!\n", "\n//! Claims lanes.\n", "/// Claims lanes.\n"] {
            assert_eq!(rules("a.rs", text), [("module-doc", 1)], "{text:?}");
        }
    }

    #[test]
    fn examples_compile() {
        for line in ["```ignore", "```rust,ignore", "```ignore-wasm32", "~~~ rust ignore", "  ```rust, ignore"] {
            assert!(is_ignored_fence(line), "{line}");
        }
        for line in ["```", "```rust", "```no_run", "```text", "ignore ```", "```ignored_words"] {
            assert!(!is_ignored_fence(line), "{line}");
        }
        assert_eq!(rules("a.rs", "//! A.\n/// ```ignore\n/// a\n/// ```\nfn a() {}\n"), [("ignored-example", 2)]);
        assert!(rules("a.rs", "//! A.\nconst A: &str = \"/// ```ignore\";\n").is_empty());
    }

    #[test]
    fn globs_are_for_prelude_and_private() {
        let text = "//! A.\npub use a::*;\npub mod prelude {\n    pub use b::*;\n}\npub use c::*;\nuse d::*;\n";
        assert_eq!(rules("relaybus/src/lib.rs", text), [("glob-re-export", 2), ("glob-re-export", 6)]);
        assert!(rules("relaybus/src/__private.rs", "//! A.\npub use a::*;\n").is_empty());
    }

    #[test]
    fn public_async_functions_speak_of_cancelling() {
        let documented = "//! A.\n/// Stops.\n///\n/// # Cancel safety\n///\n/// Yes.\npub async fn stop() {}\n";
        assert!(rules("relaybus/src/bus.rs", documented).is_empty());
        let silent = "//! A.\n/// Stops.\n#[must_use]\npub async fn stop() {}\n";
        assert_eq!(rules("relaybus/src/bus.rs", silent), [("cancel-safety", 4)]);
        assert!(rules("tests/tests/stop.rs", silent).is_empty());
        assert!(rules("relaybus-testing/src/store_suite/lease.rs", silent).is_empty());
    }

    #[test]
    fn commented_out_code_is_reported_and_prose_is_not() {
        for line in ["// let a = b();", "    // self.claim(now);", "// async fn claim() {"] {
            assert_eq!(rules("a.rs", &format!("//! A.\n{line}\n")), [("commented-out", 2)], "{line}");
        }
        for line in ["// Ends here; the next one waits.", "/// let a = b();", "// see `a = b;`", "// As before (once)."]
        {
            assert!(rules("a.rs", &format!("//! A.\n{line}\n")).is_empty(), "{line}");
        }
    }
}
