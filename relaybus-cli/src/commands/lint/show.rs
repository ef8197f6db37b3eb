//! Findings the way the compiler shows errors: the place, the line with carets, the way there, and what to do.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{Finding, Report};
use crate::Failure;

/// Prints the report.
pub(super) fn print(report: &Report<'_>, root: &Path) -> Result<(), Failure> {
    let mut files: HashMap<&str, String> = HashMap::new();
    for finding in report.findings {
        if !files.contains_key(finding.place.file.as_str()) {
            files.insert(&finding.place.file, fs::read_to_string(root.join(&finding.place.file))?);
        }
        println!("{}", text(finding, &files[finding.place.file.as_str()]));
    }
    println!("{}", summary(report));
    Ok(())
}

fn summary(report: &Report<'_>) -> String {
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    format!(
        "relaybus lint: {} in {} of {}, {}",
        counted(report.findings.len(), "finding"),
        counted(report.files, "file"),
        counted(report.packages, "package"),
        counted(report.transactions, "transaction"),
    )
}

fn text(finding: &Finding, file: &str) -> String {
    let place = &finding.place;
    let line = file.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
    let margin = " ".repeat(place.line.to_string().len());
    let end = if place.end_line == place.line { place.end_column } else { line.chars().count() + 1 };
    let carets = "^".repeat(end.saturating_sub(place.column).max(1));
    // Tabs stay tabs, so that the carets stand below what they mean.
    let indent: String = line.chars().take(place.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let mut text = String::new();
    // Writing into a text cannot fail.
    let _ = writeln!(text, "error[{}]: {}", finding.rule.name(), finding.message);
    let _ = writeln!(text, "{margin}--> {}:{}:{}", place.file, place.line, place.column);
    let _ = writeln!(text, "{margin} |");
    let _ = writeln!(text, "{} | {line}", place.line);
    let _ = writeln!(text, "{margin} | {indent}{carets}");
    let _ = writeln!(text, "{margin} |");
    for step in &finding.path {
        let _ = writeln!(
            text,
            "{margin} = note: {} ({}:{}:{})",
            step.text, step.place.file, step.place.line, step.place.column
        );
    }
    for help in &finding.help {
        let _ = writeln!(text, "{margin} = help: {help}");
    }
    text
}
