//! What a piece of work costs: time on the clock, and of the processor, by this process and by the server.

use std::fs;

use crate::effort::{Effort, Watch};

/// Microseconds.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Cost {
    pub(crate) wall: f64,
    pub(crate) client: f64,
    pub(crate) server: f64,
}

impl Cost {
    /// For each of `count`.
    pub(crate) fn each(self, count: usize) -> Self {
        let count = count as f64;
        Self { wall: self.wall / count, client: self.client / count, server: self.server / count }
    }

    /// The processor's time of both sides.
    pub(crate) fn processor(self) -> f64 {
        self.client + self.server
    }
}

/// The median of each part.
pub(crate) fn median(costs: &[Cost]) -> Cost {
    let middle = |of: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    Cost { wall: middle(|cost| cost.wall), client: middle(|cost| cost.client), server: middle(|cost| cost.server) }
}

/// Measures from its making on.
pub(crate) struct Meter {
    watch: Watch,
    postmaster: u32,
    server: f64,
}

impl Meter {
    pub(crate) fn start(postmaster: u32) -> Self {
        Self { server: server(postmaster), watch: Watch::start(), postmaster }
    }

    pub(crate) fn stop(self) -> Cost {
        let Effort { wall, cpu } = self.watch.stop();
        Cost { wall, client: cpu, server: server(self.postmaster) - self.server }
    }
}

/// Ticks of the processor's time in `/proc/<id>/stat`, for each second.
const TICKS: f64 = 100.0;

/// Processor time of the server so far, in microseconds: of its living processes, and of those that it has waited for.
fn server(postmaster: u32) -> f64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of = |process: &str| -> Option<f64> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let parent: u32 = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        (parent == postmaster).then_some(())?;
        let spent = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        Some(spent.split(' ').next()?.parse::<f64>().ok()? / 1e3)
    };
    let living: f64 = processes.filter_map(|entry| of(entry.file_name().to_str()?)).sum();
    living + ended(postmaster).unwrap_or(0.0)
}

/// Processor time of the children that have ended.
fn ended(postmaster: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{postmaster}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / TICKS * 1e6)
}
