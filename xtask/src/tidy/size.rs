//! Budgets for files and functions, and names that say nothing. All reported, none fails: what is too long for a reader,
//! a person decides. A file or function that is long for a reason says so in a comment above its first code:
//! `// tidy: long because ..`.

use super::finding::Finding;
use super::functions::functions;
use super::source::Source;

/// Lines of a file without its unit tests.
const FILE: usize = 400;
/// Lines of a file with its unit tests.
const FILE_WITH_TESTS: usize = 600;
/// Lines of a function.
const FUNCTION: usize = 75;
/// Lines of a UI case.
const UI_CASE: usize = 35;
/// Lines under which a module is a crumb.
const CRUMB: usize = 20;

/// File names that say nothing about what is in the file.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "helpers", "types", "misc"];

const EXCUSE: &str = "tidy: long because";

/// Checks the sizes in one file.
pub(crate) fn check(source: &Source, findings: &mut Vec<Finding>) {
    name(&source.path, findings);
    if is_ui_case(&source.path) {
        if source.lines.len() > UI_CASE {
            let text = format!("{} lines, a UI case shows one thing in at most {UI_CASE}", source.lines.len());
            findings.push(Finding::report(&source.path, 0, "long-ui-case", text).of_whole());
        }
        return;
    }
    file(source, findings);
    for function in functions(source) {
        let excused = source.heading(function.index).any(|line| line.comment.contains(EXCUSE));
        if function.lines > FUNCTION && !excused {
            let text = format!("`{}` has {} lines, the budget is {FUNCTION}", function.name, function.lines);
            findings.push(Finding::report(&source.path, function.index, "long-function", text));
        }
    }
}

fn name(path: &str, findings: &mut Vec<Finding>) {
    let stems = path.split('/').map(|part| part.trim_end_matches(".rs"));
    if let Some(stem) = stems.into_iter().find(|stem| EMPTY_NAMES.contains(stem)) {
        let text = format!("`{stem}` says nothing: name it for one behaviour or one public noun");
        findings.push(Finding::report(path, 0, "name", text).of_whole());
    }
}

fn file(source: &Source, findings: &mut Vec<Finding>) {
    let all = source.lines.len();
    let own = source.unit_tests().iter().filter(|&&inside| !inside).count();
    let comments = source.lines.iter().take_while(|line| line.code.trim().is_empty());
    let excused = comments.into_iter().any(|line| line.comment.contains(EXCUSE));
    if (own > FILE || all > FILE_WITH_TESTS) && !excused {
        let text =
            format!("{own} lines and {} of unit tests, the budget is {FILE} and {FILE_WITH_TESTS} in all", all - own);
        findings.push(Finding::report(&source.path, 0, "long-file", text).of_whole());
    }
    let entry = ["mod.rs", "lib.rs", "main.rs", "build.rs"].iter().any(|name| source.path.ends_with(name));
    if all < CRUMB && !entry && source.path.contains("/src/") {
        let text = format!("{all} lines: merge it with the module that uses it");
        findings.push(Finding::report(&source.path, 0, "crumb", text).of_whole());
    }
}

fn is_ui_case(path: &str) -> bool {
    path.starts_with("ui-tests/") && (path.contains("/fail/") || path.contains("/pass/"))
}

/// One line about all files: how long they and their functions are.
pub(crate) fn statistics(sources: &[Source]) -> String {
    let sources = sources.iter().filter(|source| !is_ui_case(&source.path));
    let mut files = Vec::new();
    let mut bodies = Vec::new();
    for source in sources {
        files.push((source.lines.len(), source.path.clone()));
        bodies.extend(
            functions(source)
                .into_iter()
                .map(|function| (function.lines, format!("{}:{} {}", source.path, function.index + 1, function.name))),
        );
    }
    let total: usize = files.iter().map(|(lines, _)| lines).sum();
    format!("{total} lines of Rust; files: {}; functions: {}", spread(&mut files), spread(&mut bodies))
}

fn spread(sizes: &mut [(usize, String)]) -> String {
    sizes.sort();
    let at = |percent: usize| sizes.get((sizes.len() * percent / 100).min(sizes.len().saturating_sub(1)));
    let (Some((median, _)), Some((ninety, _)), Some((longest, place))) = (at(50), at(90), sizes.last()) else {
        return "none".to_owned();
    };
    format!("{}, median {median}, 90 % at most {ninety}, longest {longest} ({place})", sizes.len())
}

#[cfg(test)]
mod tests {
    use super::{Source, check, statistics};

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let mut findings = Vec::new();
        check(&Source::parse(path, text), &mut findings);
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    fn body(lines: usize) -> String {
        format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2))
    }

    #[test]
    fn functions_have_a_budget() {
        assert!(rules("relaybus/src/lib.rs", &body(75)).is_empty());
        assert_eq!(rules("relaybus/src/lib.rs", &body(76)), ["long-function"]);
        let excused = format!("const A: u8 = 1;\n// tidy: long because it is a table\n{}", body(76));
        assert!(rules("relaybus/src/lib.rs", &excused).is_empty());
    }

    #[test]
    fn files_have_a_budget_and_more_with_their_tests() {
        let consts = |count: usize| "const A: u8 = 1;\n".repeat(count);
        let tests = |count: usize| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", consts(count - 3));
        assert!(rules("relaybus/src/bus.rs", &consts(400)).is_empty());
        assert_eq!(rules("relaybus/src/bus.rs", &consts(401)), ["long-file"]);
        assert!(rules("relaybus/src/bus.rs", &(consts(400) + &tests(200))).is_empty());
        assert_eq!(rules("relaybus/src/bus.rs", &(consts(300) + &tests(301))), ["long-file"]);
        assert!(rules("relaybus/src/bus.rs", &format!("// tidy: long because a table\n{}", consts(500))).is_empty());
    }

    #[test]
    fn crumbs_and_empty_names_are_reported() {
        let lines = "const A: u8 = 1;\n".repeat(30);
        assert_eq!(rules("relaybus/src/wake.rs", "//! Wakes.\n"), ["crumb"]);
        assert!(rules("relaybus/src/store/mod.rs", "//! Stores.\n").is_empty());
        assert_eq!(rules("relaybus/src/utils.rs", &lines), ["name"]);
        assert_eq!(rules("relaybus/src/common/text.rs", &lines), ["name"]);
        assert!(rules("relaybus/src/event_type.rs", &lines).is_empty());
    }

    #[test]
    fn ui_cases_are_short() {
        let case = "ui-tests/tests/consumer/fail/unknown_argument.rs";
        assert!(rules(case, &"use a;\n".repeat(35)).is_empty());
        assert_eq!(rules(case, &"use a;\n".repeat(36)), ["long-ui-case"]);
    }

    #[test]
    fn the_statistics_name_the_longest() {
        let sources = [Source::parse("a.rs", &body(3)), Source::parse("b.rs", &body(9))];
        let line = statistics(&sources);
        assert!(line.starts_with("12 lines of Rust; files: 2"), "{line}");
        assert!(line.ends_with("longest 9 (b.rs:1 a)"), "{line}");
        assert_eq!(statistics(&[]), "0 lines of Rust; files: none; functions: none");
    }
}
