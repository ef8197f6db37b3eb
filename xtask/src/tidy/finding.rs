//! One finding: where, which rule, what to do.

use std::fmt;

/// What a finding means for the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// A person judges.
    Report,
    /// Never right: the command fails.
    Fail,
}

/// A place that breaks a rule. Ordered by path and line.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The file's path from the root, or a folder's.
    pub(crate) path: String,
    /// The line, counted from 1; 0 for the file as a whole.
    pub(crate) line: usize,
    /// The rule's name.
    pub(crate) rule: &'static str,
    /// What is wrong and what to do.
    pub(crate) text: String,
    /// What it means for the command.
    pub(crate) verdict: Verdict,
}

impl Finding {
    /// A finding that fails the command. `index` counts lines from 0.
    pub(crate) fn fail(path: &str, index: usize, rule: &'static str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: index + 1, rule, text: text.into(), verdict: Verdict::Fail }
    }

    /// A finding for a person to judge. `index` counts lines from 0.
    pub(crate) fn report(path: &str, index: usize, rule: &'static str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Report, ..Self::fail(path, index, rule, text) }
    }

    /// The same finding, about the whole file or folder.
    pub(crate) fn of_whole(self) -> Self {
        Self { line: 0, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.verdict == Verdict::Fail { "FAIL" } else { "look" };
        write!(f, "{word} {}", self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}: {}", self.rule, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::Finding;

    #[test]
    fn a_finding_prints_where_what_and_how_bad() {
        let finding = Finding::fail("a.rs", 4, "sleep", "wait for a signal");
        assert_eq!(finding.to_string(), "FAIL a.rs:5: sleep: wait for a signal");
        let finding = Finding::report("a.rs", 0, "long-file", "401 lines").of_whole();
        assert_eq!(finding.to_string(), "look a.rs: long-file: 401 lines");
    }
}
