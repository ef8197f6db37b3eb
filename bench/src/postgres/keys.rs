//! Keys beside no keys, by the whole bus: strict and replayed, few and many.

use relaybus::{BoxError, DispatcherOptions};

use super::cost::{Cost, median};
use super::drains::Drain;
use super::publish::rate;
use super::report::{Goal, Plot, Report};
use super::server::Server;

const DATABASE: &str = "bench_keys";

/// One comparison: how the keyed side is drained, how the unkeyed one.
struct Pair {
    name: &'static str,
    keyed: Drain,
    unkeyed: Drain,
    goal: f64,
}

/// Settings of a dispatcher with so many slots, and completions in groups of as many.
pub(crate) fn slots(count: usize) -> DispatcherOptions {
    DispatcherOptions::default().concurrency(count).completion_batch(count.max(200))
}

fn pairs(events: usize) -> [Pair; 3] {
    let ten = || Drain::new(events / 2, slots(10));
    let many = || Drain::new(events, slots(BEST));
    let replay = Drain::new(events, slots(10).run_length(100).completion_batch(BEST)).keys(10).replay();
    [
        Pair { name: "10 hot keys strict / unkeyed at 10", keyed: ten().keys(10), unkeyed: ten(), goal: 0.8 },
        Pair {
            name: "1,000 keys strict / unkeyed at its best",
            keyed: many().keys(1_000),
            unkeyed: many(),
            goal: 0.75,
        },
        Pair { name: "10 hot keys replayed / unkeyed at its best", keyed: replay, unkeyed: many(), goal: 0.8 },
    ]
}

/// Slots with which no-op deliveries without keys drain fastest, of those that [`tune`] tries.
pub(crate) const BEST: usize = 400;

/// How fast the bus drains by the number of its slots, which is all that there is to tune for handlers that do nothing.
pub(crate) async fn tune(server: &mut Server, rounds: usize, percent: usize) -> Result<Report, BoxError> {
    let mut report = Report::new("slots");
    let counts = [10, 50, 100, 200, 400, 800];
    let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); counts.len()];
    for _ in 0..rounds {
        for (count, costs) in counts.iter().zip(&mut costs) {
            let drain = Drain::new((20_000 * percent / 100).max(200), slots(*count));
            costs.push(drain.measure(server, DATABASE).await?);
        }
    }
    let mut bars = Vec::new();
    for (count, costs) in counts.iter().zip(&costs) {
        let cost = median(costs);
        report.figure(&format!("the whole bus with {count} slots"), rate(cost), "per second", Goal::None);
        report.cost(&format!("the whole bus with {count} slots: a delivery"), cost);
        bars.push((format!("relaybus, {count} slots"), rate(cost)));
    }
    server.drop(DATABASE).await?;
    report.plots.push(Plot::new("slots", "No-op deliveries a second by the whole bus", bars));
    Ok(report)
}

/// Interleaved rounds of each pair.
pub(crate) async fn run(server: &mut Server, rounds: usize, percent: usize) -> Result<Report, BoxError> {
    let mut report = Report::new("keys");
    let mut bars = Vec::new();
    for pair in pairs((20_000 * percent / 100).max(200)) {
        let (mut keyed, mut unkeyed): (Vec<Cost>, Vec<Cost>) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            keyed.push(pair.keyed.measure(server, DATABASE).await?);
            unkeyed.push(pair.unkeyed.measure(server, DATABASE).await?);
        }
        let (keyed, unkeyed) = (median(&keyed), median(&unkeyed));
        report.figure(&format!("{}: keyed", pair.name), rate(keyed), "per second", Goal::None);
        report.figure(&format!("{}: unkeyed", pair.name), rate(unkeyed), "per second", Goal::None);
        report.ratios(&format!("keys: {}", pair.name), unkeyed, keyed, Goal::AtLeast(pair.goal));
        bars.push((format!("relaybus {}", pair.name), rate(keyed)));
        bars.push((format!("unkeyed ({})", pair.name.split(' ').take(3).collect::<Vec<_>>().join(" ")), rate(unkeyed)));
    }
    server.drop(DATABASE).await?;
    report.plots.push(Plot::new("keys", "Deliveries a second by the whole bus, no-op handlers", bars));
    Ok(report)
}
