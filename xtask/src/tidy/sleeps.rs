//! The rule about sleeping: a test waits for a signal or owns the clock; real time makes it slow and lets it lie.
//!
//! Suites about crashes may sleep, since they are about real processes and real time (files or folders under `tests/`
//! with `crash` in the name), and so may code that runs under virtual time: the simulation, and the test kit, whose faults
//! are delays. Elsewhere the line, or the one above it, says why: `// sleep: ..`.

use super::finding::Finding;
use super::source::{Line, Source, is_word, words};

const CALLS: [&str; 2] = ["sleep", "sleep_until"];

/// Checks the tests of one file.
pub(crate) fn check(source: &Source, findings: &mut Vec<Finding>) {
    if is_crash_suite(&source.path) || is_virtual_time(&source.path) {
        return;
    }
    let whole = is_test_file(&source.path);
    let unit_tests = source.unit_tests();
    for (index, line) in source.lines.iter().enumerate() {
        let tested = whole || unit_tests.get(index) == Some(&true);
        let above = index.checked_sub(1).and_then(|above| source.lines.get(above)).filter(|line| line.is_comment());
        if tested && sleeps(&line.code) && !has_reason(line) && !above.is_some_and(has_reason) {
            let text = "a test sleeps: wait for a signal or move the clock, or say why with `// sleep: ..`";
            findings.push(Finding::fail(&source.path, index, "sleep", text));
        }
    }
}

/// Whether all of the file is about testing.
fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

fn is_virtual_time(path: &str) -> bool {
    path.starts_with("tests/src/sim/") || path.starts_with("relaybus-testing/src/")
}

fn is_crash_suite(path: &str) -> bool {
    path.rsplit_once("tests/").is_some_and(|(_, rest)| rest.contains("crash"))
}

fn has_reason(line: &Line) -> bool {
    line.comment.split_once("sleep:").is_some_and(|(_, reason)| !reason.trim().is_empty())
}

/// Whether the code calls a sleep that waits for real time. A method (`clock.sleep(..)`) belongs to a clock, and a path
/// that does not end in `time` or `thread` to something else.
fn sleeps(code: &str) -> bool {
    CALLS.iter().any(|call| words(code, call).any(|at| is_real_call(code, at, at + call.len())))
}

fn is_real_call(code: &str, from: usize, to: usize) -> bool {
    let called = code.get(to..).is_some_and(|rest| rest.trim_start().starts_with('('));
    let before = code.get(..from).unwrap_or_default().trim_end();
    if !called || before.ends_with('.') || words(before, "fn").any(|at| at + 2 == before.len()) {
        return false;
    }
    let Some(path) = before.strip_suffix("::") else { return true };
    matches!(path.rsplit(|character| !is_word(character)).next(), Some("time" | "thread"))
}

#[cfg(test)]
mod tests {
    use super::{Source, check, sleeps};

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut findings = Vec::new();
        check(&Source::parse(path, text), &mut findings);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn real_sleeps_are_told_from_a_clocks() {
        for code in ["std::thread::sleep(d)", "tokio::time::sleep(d).await", "sleep(d).await", "time::sleep_until (t)"]
        {
            assert!(sleeps(code), "{code}");
        }
        for code in ["clock.sleep(d).await", "fn sleep(d)", "clock::sleep(d)", "use tokio::time::sleep;", "asleep(d)"] {
            assert!(!sleeps(code), "{code}");
        }
    }

    #[test]
    fn tests_are_found_wherever_they_are() {
        let text = "fn run() { thread::sleep(d) }\n#[cfg(test)]\nmod tests {\n    fn t() { thread::sleep(d) }\n}\n";
        assert_eq!(lines("relaybus/src/bus.rs", text), [4]);
        assert_eq!(lines("relaybus/src/bus/tests.rs", text), [1, 4]);
        assert_eq!(lines("relaybus/tests/bus.rs", text), [1, 4]);
        assert!(lines("relaybus-testing/src/store_suite/lease.rs", text).is_empty());
    }

    #[test]
    fn crash_suites_and_reasons_excuse() {
        let text = "thread::sleep(d);\n";
        assert_eq!(lines("tests/tests/order.rs", text), [1]);
        assert!(lines("tests/tests/crash_sqlite.rs", text).is_empty());
        assert!(lines("tests/tests/crash/worker.rs", text).is_empty());
        assert!(
            lines("tests/tests/order.rs", "thread::sleep(d); // sleep: the file system's clock is coarse\n").is_empty()
        );
        assert!(
            lines("tests/tests/order.rs", "// sleep: the file system's clock is coarse\nthread::sleep(d);\n")
                .is_empty()
        );
        assert_eq!(lines("tests/tests/order.rs", "thread::sleep(d); // sleep:\n"), [1]);
    }
}
