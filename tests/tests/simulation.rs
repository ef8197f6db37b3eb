//! The whole bus under virtual time, by seed: what it promises holds whatever goes wrong.
//!
//! `RELAYBUS_SIM_SEEDS=n` runs more seeds, `RELAYBUS_SIM_SEED=x` runs one and prints all of its story.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::sync::atomic::{AtomicU64, Ordering};

use relaybus_tests::sim::{Mutation, simulate};

/// Seeds without a wish.
const SEEDS: u64 = 300;
/// Threads that share the seeds.
const THREADS: usize = 2;

fn wish(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("`{variable}` is `{value}`, expected a number")))
}

/// The first of `seeds` for which `look` has something to say, whatever the threads' order.
fn first<T: Send>(seeds: std::ops::Range<u64>, look: impl Fn(u64) -> Option<T> + Sync) -> Option<T> {
    let next = AtomicU64::new(seeds.start);
    let found = std::sync::Mutex::new(None::<(u64, T)>);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds.end || found.lock().unwrap().is_some() {
                        return;
                    }
                    if let Some(answer) = look(seed) {
                        let mut found = found.lock().unwrap();
                        if found.as_ref().is_none_or(|(other, _)| seed < *other) {
                            *found = Some((seed, answer));
                        }
                    }
                }
            });
        }
    });
    found.into_inner().unwrap().map(|(_, answer)| answer)
}

#[test]
fn the_guarantees_hold() {
    let one = wish("RELAYBUS_SIM_SEED");
    let seeds = one.map_or(0..wish("RELAYBUS_SIM_SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let broken = first(seeds, |seed| {
        let outcome = simulate(seed, Mutation::None);
        if one.is_some() {
            println!("{}", outcome.tell(true));
        }
        outcome.violation.is_some().then(|| outcome.tell(one.is_some()))
    });
    if let Some(story) = broken {
        panic!("{story}");
    }
}

/// Seeds within which each planted fault is noticed.
const SEEDS_OF_A_MUTATION: u64 = 60;

#[test]
fn planted_faults_are_noticed() {
    for mutation in Mutation::ALL {
        let noticed = first(0..SEEDS_OF_A_MUTATION, |seed| {
            simulate(seed, mutation).violation.map(|(rule, text)| format!("seed {seed}: {rule}: {text}"))
        });
        match noticed {
            Some(noticed) => println!("{mutation:?}: {noticed}"),
            None => panic!("{mutation:?} goes unnoticed"),
        }
    }
}

#[test]
fn a_seed_tells_the_same_story_again() {
    for seed in 0..20 {
        let (one, other) = (simulate(seed, Mutation::None), simulate(seed, Mutation::None));
        let differs = one.story.iter().zip(&other.story).position(|(one, other)| one != other);
        if let Some(line) = differs {
            panic!("seed {seed}, line {line}:\n{}\n{}", one.story[line], other.story[line]);
        }
        assert_eq!(one.story.len(), other.story.len(), "seed {seed}");
        assert_eq!(one.plan, other.plan);
    }
}
