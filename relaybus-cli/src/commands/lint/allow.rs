//! Allowances in comments, for code that no macro of ours reads: `// relaybus-lint: allow(external_call): the reason`.
//!
//! One covers the line it is on, or, on a line of its own, the statement that begins on the next line of code.

use std::collections::HashMap;

use super::Rule;

/// What begins such a comment.
const MARK: &str = "relaybus-lint: allow(";

/// The allowances of a file.
pub(crate) struct Comments {
    by_line: HashMap<usize, Comment>,
}

/// An allowance.
pub(crate) struct Comment {
    rule: String,
    /// Why; empty when nothing was said.
    reason: String,
    /// Where the comment begins: its line and column from 1.
    at: (usize, usize),
    length: usize,
}

impl Comments {
    /// Finds the allowances in the text of a file.
    pub(crate) fn of(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut by_line = HashMap::new();
        for (index, line) in lines.iter().enumerate() {
            let Some((before, comment)) = line.split_once("//") else { continue };
            let Some((rule, rest)) = comment.trim_start().strip_prefix(MARK).and_then(|rest| rest.split_once(')'))
            else {
                continue;
            };
            let covered = if before.trim().is_empty() { next_code(&lines, index) } else { index };
            let comment = Comment {
                rule: rule.trim().to_owned(),
                reason: rest.trim_start_matches(':').trim().to_owned(),
                at: (index + 1, before.chars().count() + 1),
                length: comment.trim_end().chars().count() + 2,
            };
            by_line.insert(covered + 1, comment);
        }
        Self { by_line }
    }

    /// Whether a finding of `rule` on `line` is allowed.
    pub(crate) fn allow(&self, rule: Rule, line: usize) -> bool {
        self.by_line.get(&line).is_some_and(|comment| comment.rule == rule.name() && !comment.reason.is_empty())
    }

    /// The places of allowances that lack a reason: line, column and length.
    pub(crate) fn without_reason(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let faulty = self.by_line.values().filter(|comment| comment.reason.is_empty());
        faulty.map(|comment| (comment.at.0, comment.at.1, comment.length))
    }
}

fn next_code(lines: &[&str], after: usize) -> usize {
    let is_code = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    (after + 1..lines.len()).find(|index| is_code(lines[*index])).unwrap_or(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_covers_its_line_or_the_next_code() {
        let text = "a(); // relaybus-lint: allow(external_call): local\n\n\
                    // relaybus-lint: allow(publish_detached): audit\n// more\n\nb();\n\
                    c(); // relaybus-lint: allow(external_call)\n";
        let comments = Comments::of(text);
        assert!(comments.allow(Rule::ExternalCall, 1) && comments.allow(Rule::PublishDetached, 6));
        assert!(!comments.allow(Rule::PublishDetached, 1) && !comments.allow(Rule::ExternalCall, 7));
        assert_eq!(comments.without_reason().collect::<Vec<_>>(), [(7, 6, 38)]);
    }
}
