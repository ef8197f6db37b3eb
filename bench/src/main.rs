//! `cargo xtask bench [group ..]`: measures relaybus beside the raw limit of the same run.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark measures with real clocks, prints its figures, and divides counts"
)]

mod compile;
mod effort;
mod events;
mod figures;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod processes;
mod sqlite;

use std::time::Duration;

use figures::Outcome;

fn main() -> Result<(), relaybus::BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == processes::PROCESS) {
        return processes::process(&arguments[1..]);
    }
    let smoke = arguments.iter().any(|argument| argument == "--smoke");
    let scale = |count: usize| if smoke { count / 100 } else { count };
    let groups: [(&str, &dyn Fn() -> Outcome); 9] = [
        ("memory-200", &|| memory::deliveries(scale(1_000_000), None, 200)),
        ("memory-10", &|| memory::deliveries(scale(300_000), None, 10)),
        ("memory-keyed", &|| memory::deliveries(scale(300_000), Some(1000), 200)),
        ("sqlite-publish", &|| sqlite::publish(scale(2_000))),
        ("sqlite-dispatch", &|| sqlite::dispatch(scale(20_000))),
        ("sqlite-backlog", &|| sqlite::backlog(scale(1_000_000).max(10_000))),
        ("sqlite-processes", &|| processes::fairness(Duration::from_millis(if smoke { 200 } else { 5_000 }))),
        // It compiles everything that relaybus needs into a folder of its own: minutes.
        ("compile", &|| if smoke { Ok(Vec::new()) } else { compile::cost() }),
        ("sqlite-wake-up", &|| processes::wake_up(if smoke { 20 } else { 1_000 })),
    ];
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |group: &str| wanted.is_empty() || wanted.iter().any(|wanted| group.starts_with(wanted.as_str()));
    for (group, run) in groups.into_iter().filter(|(group, _)| is_wanted(group)) {
        for figure in run().map_err(|error| format!("{group}: {error}"))? {
            println!("{:<60} {:>14.2} {}", figure.name, figure.value, figure.unit);
        }
    }
    #[cfg(feature = "postgres")]
    for group in postgres::GROUPS.into_iter().filter(|group| is_wanted(group)) {
        if !(smoke && wanted.is_empty() && postgres::is_slow(group)) {
            postgres::run(group, smoke)?;
        }
    }
    Ok(())
}
