//! Rules for attributes: no ignored test, no lint switched off without a reason.

use super::finding::Finding;
use super::source::{Source, words};

/// Checks the attributes of one file.
pub(crate) fn check(source: &Source, findings: &mut Vec<Finding>) {
    for (index, attribute) in attributes(source) {
        if is_ignore(&attribute) {
            let text = "an ignored test proves nothing: make it run, or delete it";
            findings.push(Finding::fail(&source.path, index, "ignored-test", text));
        }
        // A UI case is a user's crate, and a user needs no reason.
        if silences_without_reason(&attribute) && !source.path.starts_with("ui-tests/tests/") {
            let text = "a lint is switched off without a reason: add `reason = \"..\"`";
            findings.push(Finding::fail(&source.path, index, "reason", text));
        }
    }
}

/// The attributes of a file, each with its line and without white space: `#[allow(dead_code,reason="")]`.
fn attributes(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String, usize)> = None;
    for (index, line) in source.lines.iter().enumerate() {
        let mut before = ' ';
        for character in line.code.chars().filter(|character| !character.is_whitespace()) {
            if open.is_none() && character == '[' && (before == '#' || before == '!') {
                open = Some((index, String::new(), 0));
            }
            if let Some((_, text, depth)) = &mut open {
                text.push(character);
                match character {
                    '[' => *depth += 1,
                    ']' => *depth -= 1,
                    _ => {}
                }
                if *depth == 0 {
                    found.extend(open.take().map(|(line, text, _)| (line, text)));
                }
            }
            before = character;
        }
    }
    found
}

fn is_ignore(attribute: &str) -> bool {
    let conditional = attribute.starts_with("[cfg_attr(");
    words(attribute, "ignore").any(|at| {
        let before = attribute.get(..at).and_then(|text| text.chars().next_back());
        before == Some('[') || conditional && before == Some(',')
    })
}

fn silences_without_reason(attribute: &str) -> bool {
    ["allow(", "expect("].iter().any(|opening| {
        attribute.match_indices(opening).any(|(at, _)| {
            let before = attribute.get(..at).and_then(|text| text.chars().next_back());
            let lints = attribute.get(at + opening.len()..).and_then(|rest| rest.split(')').next());
            matches!(before, Some('[' | ',')) && lints.is_some_and(|lints| !lints.contains("reason="))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{Source, check};

    fn rules(text: &str) -> Vec<(&'static str, usize)> {
        let mut findings = Vec::new();
        check(&Source::parse("a.rs", text), &mut findings);
        findings.into_iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn ignored_tests_fail_in_every_spelling() {
        for text in
            ["#[ignore]", "#[ignore = \"slow\"]", "# [ ignore ]", "#[cfg_attr(miri, ignore)]", "#[\n  ignore\n]"]
        {
            assert_eq!(rules(text), [("ignored-test", 1)], "{text}");
        }
        for text in ["// #[ignore]", "let a = \"#[ignore]\";", "#[ignored]", "#[serde(skip, ignore)]", "a[ignore]"] {
            assert!(rules(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn switching_a_lint_off_needs_a_reason() {
        for text in [
            "#[allow(dead_code)]",
            "#![allow(dead_code, unused)]",
            "#[expect(clippy::panic)]",
            "#[cfg_attr(test, allow(dead_code))]",
            "#[allow(\n    dead_code,\n)]",
        ] {
            assert_eq!(rules(text), [("reason", 1)], "{text}");
        }
        for text in [
            "#[allow(dead_code, reason = \"kept for the next store\")]",
            "#![allow(\n    dead_code,\n    reason = \"generated\"\n)]",
            "#[expect(clippy::panic, reason = \"a test\")]",
            "#[deny(missing_docs)]",
            "result.expect(\"x\"); allow(dead_code)",
            "// #[allow(dead_code)]",
        ] {
            assert!(rules(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn two_attributes_are_two_findings() {
        assert_eq!(rules("#[ignore]\n#[allow(x)]\nfn a() {}\n"), [("ignored-test", 1), ("reason", 2)]);
    }
}
