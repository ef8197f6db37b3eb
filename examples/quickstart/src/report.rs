//! What the program prints: a progress bar, and a table or a JSON object at the end.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

use relaybus::store::DeliveryRecord;
use relaybus::{BoxError, ErrorInfo};
use serde::Serialize;

use crate::check::handler_of;
use crate::tables::Rows;

/// Prints a line. Nobody reading it is no reason to stop.
pub fn say(line: impl Display) {
    let _ = writeln!(stdout(), "{line}");
}

/// The error with its causes, in one line.
pub fn with_causes(error: BoxError) -> String {
    match error.downcast::<relaybus::Error>() {
        Ok(error) => ErrorInfo::of(&error).message,
        Err(error) => error.to_string(),
    }
}

/// A bar on a terminal; elsewhere a line a second.
#[derive(Debug)]
pub struct Progress {
    is_terminal: bool,
    shown: Instant,
}

/// Characters of a full bar.
const WIDTH: usize = 40;

impl Progress {
    pub fn start() -> Self {
        Self { is_terminal: stdout().is_terminal(), shown: Instant::now() }
    }

    /// Shows how far it is, unless it did so just now.
    pub fn show(&mut self, done: usize, total: usize, what: impl Display) {
        let pause = Duration::from_millis(if self.is_terminal { 50 } else { 1000 });
        if self.shown.elapsed() < pause && done < total {
            return;
        }
        self.shown = Instant::now();
        if self.is_terminal {
            let filled = (done * WIDTH).checked_div(total).unwrap_or(WIDTH).min(WIDTH);
            let bar = "#".repeat(filled) + &".".repeat(WIDTH - filled);
            let _ = write!(stdout(), "\r[{bar}] {what}\x1b[K").and_then(|()| stdout().flush());
        } else {
            say(what);
        }
    }

    /// Removes the bar.
    pub fn end(self) {
        if self.is_terminal {
            let _ = write!(stdout(), "\r\x1b[K");
        }
    }
}

/// The result of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    pub store: String,
    /// Events in the store's tables, all runs on it together.
    pub events: usize,
    /// Events that this run imported.
    pub imported: usize,
    /// Deliveries that ended, by handler, all runs together.
    pub deliveries: BTreeMap<String, usize>,
    /// Attempts after the first, all runs together.
    pub retries: i64,
    /// Deliveries that were refused for good.
    pub dead_letters: usize,
    pub workers: usize,
    pub lost_workers: usize,
    pub seconds: f64,
    /// Deliveries that this run handled, a second.
    pub deliveries_per_second: f64,
    /// Half of the handlers of this run started within this time after their event was stored.
    pub latency_median_ms: Option<f64>,
    /// 99 of 100 did.
    pub latency_p99_ms: Option<f64>,
    /// What does not hold; nothing when all is well.
    pub problems: Vec<String>,
}

impl Report {
    /// The report of a run that found `before` in the tables and left `after`.
    pub fn new(store: &str, before: &Rows, after: &Rows, dead: &[DeliveryRecord], took: Duration) -> Self {
        // The highest attempt of each delivery: one that a crash repeated is logged twice.
        let mut attempts: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for row in &after.log {
            let attempt = attempts.entry((&row.handler, &row.event_id)).or_default();
            *attempt = row.attempt.max(*attempt);
        }
        for record in dead {
            let delivery = (record.id.handler().as_str(), record.id.event_id().as_str());
            attempts.insert(delivery, record.attempts.into());
        }
        let mut deliveries = BTreeMap::new();
        for (handler, _) in attempts.keys() {
            *deliveries.entry(handler_of(handler).to_owned()).or_default() += 1;
        }
        let handled = after.log.get(before.log.len()..).unwrap_or_default();
        let mut latencies: Vec<i64> = handled.iter().filter(|row| row.attempt == 1).map(|row| row.latency).collect();
        latencies.sort_unstable();
        let seconds = took.as_secs_f64();
        Self {
            store: store.to_owned(),
            events: after.webhooks.len(),
            imported: after.webhooks.len() - before.webhooks.len(),
            deliveries,
            retries: attempts.values().map(|attempts| attempts - 1).sum(),
            dead_letters: dead.len(),
            workers: 0,
            lost_workers: 0,
            seconds: rounded(seconds),
            deliveries_per_second: rounded(as_f64(handled.len()) / seconds),
            latency_median_ms: percentile(&latencies, 50),
            latency_p99_ms: percentile(&latencies, 99),
            problems: Vec::new(),
        }
    }

    /// Prints it, as a table or as one line of JSON. What nobody can read is no result: that it cannot be written is an error.
    pub fn print(&self, json: bool) -> Result<(), BoxError> {
        let text = if json { serde_json::to_string(self)? } else { self.to_string() };
        let written = writeln!(stdout(), "{text}").and_then(|()| stdout().flush());
        written.map_err(|error| format!("the report cannot be written: {error}").into())
    }
}

/// The value that `percent` of the sorted microseconds do not pass, in milliseconds.
fn percentile(sorted: &[i64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map(|micros| rounded(Duration::from_micros(micros.unsigned_abs()).as_secs_f64() * 1e3))
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} ms"));
        writeln!(f, "events         {:>10}  ({} imported by this run)", self.events, self.imported)?;
        for (handler, deliveries) in &self.deliveries {
            writeln!(f, "  {handler:<12} {deliveries:>10}  deliveries")?;
        }
        writeln!(f, "retries        {:>10}", self.retries)?;
        writeln!(f, "dead letters   {:>10}", self.dead_letters)?;
        if self.workers > 0 {
            writeln!(f, "workers        {:>10}  ({} lost)", self.workers, self.lost_workers)?;
        }
        writeln!(f, "rate           {:>10.0}  deliveries/s for {:.1} s", self.deliveries_per_second, self.seconds)?;
        writeln!(f, "latency median {:>10}  from commit to handler", milliseconds(self.latency_median_ms))?;
        writeln!(f, "latency p99    {:>10}", milliseconds(self.latency_p99_ms))?;
        match self.problems.len() {
            0 => write!(f, "checked: every event took effect once, in the order of its repository"),
            problems => write!(f, "WRONG: {problems} problems, such as: {}", self.problems.first().map_or("", |p| p)),
        }
    }
}
