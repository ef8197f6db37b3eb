//! Running the steps of a command one after the other: each is timed, none is skipped because another failed.

use std::time::{Duration, Instant};

use crate::Outcome;
use crate::tally::Tally;

/// How many failing tests the summary names.
const NAMED: usize = 50;

/// The steps done so far.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Done>,
    tally: Tally,
}

struct Done {
    name: &'static str,
    took: Duration,
    /// The step's note, or why it failed.
    result: Result<String, String>,
    failed_tests: usize,
}

impl Steps {
    /// Runs one step. It may count tests into the tally it is given.
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce(&mut Tally) -> Outcome) {
        println!("\n==> {name}");
        let mut tally = Tally::default();
        let started = Instant::now();
        let result = work(&mut tally).map_err(|error| error.to_string());
        let took = started.elapsed();
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        println!("<== {name}: {word} after {}", seconds(took));
        self.done.push(Done { name, took, result, failed_tests: tally.failed });
        self.tally.add(tally);
    }

    /// The table of all steps; the last line is `N passed, N failed`.
    ///
    /// # Errors
    ///
    /// When a step failed: the table itself was printed, the error names the steps.
    pub(crate) fn finish(self) -> Outcome {
        println!("\n{}", self.table());
        let failing = self.failing();
        let counts = self.counts();
        if failing.is_empty() {
            return Ok(counts);
        }
        println!("failed steps: {}\n{counts}", failing.join(", "));
        Err(format!("{} of {} steps failed", failing.len(), self.done.len()).into())
    }

    fn table(&self) -> String {
        let width = self.done.iter().map(|done| done.name.len()).max().unwrap_or_default();
        let mut lines: Vec<String> = self
            .done
            .iter()
            .map(|done| {
                let (word, note) = match &done.result {
                    Ok(note) => ("ok", note),
                    Err(reason) => ("FAILED", reason),
                };
                let note = note.lines().next().unwrap_or_default();
                format!("{word:<6}  {:<width$}  {:>8}  {note}", done.name, seconds(done.took)).trim_end().to_owned()
            })
            .collect();
        lines.extend(self.tally.failing.iter().take(NAMED).map(|name| format!("failed test: {name}")));
        if self.tally.failing.len() > NAMED {
            lines.push(format!("and {} more failed tests", self.tally.failing.len() - NAMED));
        }
        lines.join("\n")
    }

    fn failing(&self) -> Vec<&'static str> {
        self.done.iter().filter(|done| done.result.is_err()).map(|done| done.name).collect()
    }

    /// A failing step that names no failing test counts as one failure, so that "0 failed" means that all is well.
    fn counts(&self) -> String {
        let wordless = self.done.iter().filter(|done| done.result.is_err() && done.failed_tests == 0).count();
        format!("{} passed, {} failed", self.tally.passed, self.tally.failed + wordless)
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::Steps;
    use crate::tally::Tally;

    fn counting(passed: usize, failed: usize) -> impl FnOnce(&mut Tally) -> crate::Outcome {
        move |tally| {
            tally.add(Tally { passed, failed, ..Tally::default() });
            if failed == 0 { Ok(String::new()) } else { Err("tests failed".into()) }
        }
    }

    #[test]
    fn all_well_ends_with_the_counts() {
        let mut steps = Steps::default();
        steps.step("format", |_| Ok("clean".to_owned()));
        steps.step("tests", counting(4, 0));
        assert!(steps.table().contains("ok      format"));
        assert_eq!(steps.finish().unwrap(), "4 passed, 0 failed");
    }

    #[test]
    fn a_failure_stops_no_later_step_and_every_failing_step_is_named() {
        let mut steps = Steps::default();
        steps.step("lints", |_| Err("a warning".into()));
        steps.step("tests", counting(4, 2));
        steps.step("docs", |_| Ok(String::new()));
        assert_eq!(steps.failing(), ["lints", "tests"]);
        assert_eq!(steps.counts(), "4 passed, 3 failed");
        assert_eq!(steps.finish().unwrap_err().to_string(), "2 of 3 steps failed");
    }
}
