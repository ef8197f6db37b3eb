//! What was done to the processes, read from the journal: the reasons for which a delivery may run again.

use std::collections::HashMap;

use super::journal::{Line, What};

/// What cost a process what it held, from one line of the journal to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deed {
    pub(super) from: usize,
    to: usize,
}

/// What was done to whom.
#[derive(Debug, Default)]
pub(super) struct Harm {
    deeds: HashMap<u32, Vec<Deed>>,
    /// Processes that noticed that they lost a lease, and those that were asked to end.
    lost: Vec<u32>,
    asked: Vec<u32>,
    /// Ends of runs with an error, by process, handler and event.
    failed: HashMap<(u32, String, String), Vec<usize>>,
    /// Lines at which processes were stopped or went on, and how many are stopped from there on.
    stops: Vec<(usize, i32)>,
    /// Lines from which to which the database's server was away.
    restarts: Vec<(usize, usize)>,
}

impl Harm {
    pub(super) fn of(journal: &[Line]) -> Self {
        let mut harm = Self::default();
        for (number, line) in journal.iter().enumerate() {
            match &line.what {
                // A process may still write lines between the parent's line and its end, and none after that.
                What::Kill | What::Abort => harm.begin(line.process, number),
                What::Terminate => {
                    harm.begin(line.process, number);
                    harm.asked.push(line.process);
                }
                What::Stop => {
                    harm.begin(line.process, number);
                    harm.stopped(number, 1);
                }
                What::Continue => {
                    if let Some(deed) = harm.deeds.get_mut(&line.process).and_then(|deeds| deeds.last_mut()) {
                        deed.to = number;
                    }
                    harm.stopped(number, -1);
                }
                What::Lost { .. } => harm.lost.push(line.process),
                What::Failed { handler, event, .. } => {
                    harm.failed.entry((line.process, handler.clone(), event.clone())).or_default().push(number);
                }
                // Nobody does anything without the server: that is as if all were stopped.
                What::ServerStops => {
                    harm.stopped(number, 1);
                    harm.restarts.push((number, usize::MAX));
                }
                What::ServerStarted => {
                    harm.stopped(number, -1);
                    if let Some((_, to)) = harm.restarts.last_mut() {
                        *to = number;
                    }
                }
                What::Start(_) | What::Ok { .. } | What::Error { .. } | What::Spawned { .. } | What::Exit => {}
            }
        }
        harm
    }

    fn begin(&mut self, process: u32, from: usize) {
        self.deeds.entry(process).or_default().push(Deed { from, to: usize::MAX });
    }

    fn stopped(&mut self, number: usize, change: i32) {
        let before = self.stops.last().map_or(0, |(_, stopped)| *stopped);
        self.stops.push((number, before + change));
    }

    /// What was done to a process between two lines.
    pub(super) fn between(&self, process: u32, from: usize, to: usize) -> Option<Deed> {
        self.deeds.get(&process)?.iter().find(|deed| deed.from < to && deed.to >= from).copied()
    }

    /// Whether a run of `process` that started at line `from` ended with an error before line `to`.
    pub(super) fn failed(&self, process: u32, handler: &str, event: &str, from: usize, to: usize) -> bool {
        let ends = self.failed.get(&(process, handler.to_owned(), event.to_owned()));
        ends.is_some_and(|ends| ends.iter().any(|at| (from..to).contains(at)))
    }

    /// Whether a process noticed that it lost a lease. It may notice after another one has run its delivery.
    pub(super) fn lost(&self, process: u32) -> bool {
        self.lost.contains(&process)
    }

    /// Whether a process was asked to end.
    pub(super) fn asked(&self, process: u32) -> bool {
        self.asked.contains(&process)
    }

    /// How many processes were harmed between two lines.
    pub(super) fn count(&self, from: usize, to: usize) -> u32 {
        let all = self.deeds.values().flatten().filter(|deed| deed.from > from && deed.from < to);
        u32::try_from(all.count()).unwrap_or(u32::MAX)
    }

    /// Whether the server was away at some time between two lines.
    pub(super) fn restarted(&self, from: usize, to: usize) -> bool {
        self.restarts.iter().any(|&(stopped, started)| stopped < to && started >= from)
    }

    /// Whether a process was stopped at some time between two lines.
    pub(super) fn anybody_stopped(&self, from: usize, to: usize) -> bool {
        let before = self.stops.partition_point(|(at, _)| *at <= from);
        let then = before.checked_sub(1).is_some_and(|index| self.stops[index].1 > 0);
        then || self.stops.get(before).is_some_and(|(at, _)| *at < to)
    }
}
