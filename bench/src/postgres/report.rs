//! What a group of benchmarks answers: figures with their goals, and plots. Printed, and kept as JSON and SVG.

use std::fs;
use std::path::{Path, PathBuf};

use relaybus::BoxError;
use serde::Serialize;

use super::cost::Cost;
use super::plot;

/// What a figure should be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// It is only told.
    None,
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::None => true,
        }
    }
}

/// One figure.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    goal: Goal,
}

/// Bars with a name and a value each.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) file: String,
    pub(crate) title: String,
    pub(crate) bars: Vec<(String, f64)>,
}

impl Plot {
    pub(crate) fn new(file: &str, title: &str, bars: Vec<(String, f64)>) -> Self {
        Self { file: file.to_owned(), title: title.to_owned(), bars }
    }
}

/// What a group found.
#[derive(Debug)]
pub(crate) struct Report {
    group: &'static str,
    figures: Vec<Figure>,
    notes: Vec<String>,
    pub(crate) plots: Vec<Plot>,
}

/// The file of a group.
#[derive(Serialize)]
struct Kept<'a> {
    machine: &'a Machine,
    figures: &'a [Figure],
    notes: &'a [String],
}

/// Where the figures were measured.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    server: String,
    system: String,
    processor: String,
    cores: usize,
    /// Processes that wanted to run, on average of the last minute, when the group began.
    load: f64,
}

impl Machine {
    pub(crate) fn here(server: String) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
        Self {
            server: format!("PostgreSQL {server}"),
            system: read("/proc/version").split_whitespace().take(3).collect::<Vec<_>>().join(" "),
            processor: processor.unwrap_or("unknown").trim().to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
        }
    }
}

impl Report {
    pub(crate) fn new(group: &'static str) -> Self {
        Self { group, figures: Vec::new(), notes: Vec::new(), plots: Vec::new() }
    }

    /// Adds a figure, and prints it.
    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: &'static str, goal: Goal) {
        let judged = match goal {
            Goal::AtLeast(least) => format!("at least {least}: "),
            Goal::AtMost(most) => format!("at most {most}: "),
            Goal::None => String::new(),
        };
        let word = match (goal, goal.is_met(value)) {
            (Goal::None, _) => "",
            (_, true) => "met",
            (_, false) => "MISSED",
        };
        println!("{name:<78} {value:>12.2} {unit:<10} {judged}{word}");
        self.figures.push(Figure { name: name.to_owned(), value, unit, goal });
    }

    /// Adds a sentence about what could not be measured, and prints it.
    pub(crate) fn note(&mut self, text: &str) {
        println!("{text}");
        self.notes.push(text.to_owned());
    }

    /// What a piece of work costs: by the clock, and of the processor.
    pub(crate) fn cost(&mut self, name: &str, cost: Cost) {
        self.figure(name, cost.wall, "us", Goal::None);
        self.figure(&format!("{name}, processor"), cost.processor(), "us", Goal::None);
        self.figure(&format!("{name}, processor of the server"), cost.server, "us", Goal::None);
    }

    /// How much more one thing costs than another, by the clock and by the processor. The goal is for the processor's: the
    /// clock's says as much about what else the machine does.
    pub(crate) fn ratios(&mut self, name: &str, one: Cost, other: Cost, goal: Goal) {
        let by = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        self.figure(name, by(one.wall, other.wall), "ratio", goal);
        self.figure(&format!("{name}, processor"), by(one.processor(), other.processor()), "ratio", goal);
        self.figure(&format!("{name}, processor of the server"), by(one.server, other.server), "ratio", Goal::None);
    }

    /// Writes the figures and the plots.
    pub(crate) fn keep(&self, machine: &Machine) -> Result<(), BoxError> {
        let folder = results();
        fs::create_dir_all(&folder)?;
        let kept = serde_json::to_string_pretty(&Kept { machine, figures: &self.figures, notes: &self.notes })?;
        fs::write(folder.join(format!("postgres-{}.json", self.group)), kept + "\n")?;
        for plot in &self.plots {
            plot::draw(&folder.join(format!("postgres-{}.svg", plot.file)), plot)?;
        }
        Ok(())
    }
}

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results")
}
