//! What a piece of work took: time on the clock, and time of the processor by all threads of this process.
//!
//! On a machine that does other things too, the second says more.

use std::time::Instant;

/// Microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effort {
    pub(crate) wall: f64,
    /// 0 where the system does not tell.
    pub(crate) cpu: f64,
}

impl Effort {
    /// For each of `count`.
    pub(crate) fn each(self, count: usize) -> Self {
        Self { wall: self.wall / count as f64, cpu: self.cpu / count as f64 }
    }
}

/// Measures from its making on.
#[derive(Debug)]
pub(crate) struct Watch {
    began: Instant,
    cpu: f64,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), cpu: cpu() }
    }

    pub(crate) fn stop(self) -> Effort {
        Effort { wall: self.began.elapsed().as_secs_f64() * 1e6, cpu: cpu() - self.cpu }
    }
}

/// Processor time of the living threads so far, in microseconds.
fn cpu() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let times = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    times.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e3
}

/// The median of each.
pub(crate) fn median(efforts: &[Effort]) -> Effort {
    let middle = |of: fn(&Effort) -> f64| {
        let mut values: Vec<f64> = efforts.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    Effort { wall: middle(|effort| effort.wall), cpu: middle(|effort| effort.cpu) }
}
