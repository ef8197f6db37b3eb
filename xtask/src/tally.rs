//! Counting tests from what the test harness prints: one `test result:` line for each test binary.

/// Tests counted in the output of one or more children.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Tests that passed.
    pub(crate) passed: usize,
    /// Tests that failed.
    pub(crate) failed: usize,
    /// Tests the harness left out; house rules allow none.
    pub(crate) ignored: usize,
    /// Names of the tests that failed, as the harness prints them.
    pub(crate) failing: Vec<String>,
}

impl Tally {
    /// Counts one line of output.
    pub(crate) fn line(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            self.failing.push(name.to_owned());
        }
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        for part in counts.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(kind)) = (words.next(), words.next()) else { continue };
            let Ok(count) = count.parse::<usize>() else { continue };
            match kind {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }

    /// Adds what another child's output counted.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.failing.extend(other.failing);
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    fn counted(output: &str) -> Tally {
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.line(line));
        tally
    }

    #[test]
    fn results_of_several_binaries_are_summed() {
        let tally = counted(
            "running 2 tests\n\
             test a ... ok\n\
             test b::c ... FAILED\n\
             test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s\n\
             \n\
             test src/lib.rs - example (line 3) ... ok\n\
             test result: ok. 20 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 12.34s\n",
        );
        assert_eq!(tally, Tally { passed: 21, failed: 1, ignored: 2, failing: vec!["b::c".to_owned()] });
    }

    #[test]
    fn only_the_harness_is_counted() {
        let tally = counted("the test result: ok. 7 passed; 1 failed\n7 passed, 1 failed\ntest result: none\n");
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn adding_keeps_every_count() {
        let mut sum = counted("test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured\n");
        sum.add(counted("test x ... FAILED\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured\n"));
        assert_eq!(sum, Tally { passed: 3, failed: 1, ignored: 1, failing: vec!["x".to_owned()] });
    }
}
