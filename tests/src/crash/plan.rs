//! What a publisher does: a pure function of the seed, so that the parent knows it without asking anybody.

use std::ops::Range;
use std::time::Duration;

/// Keys that most events share.
const HOT_KEYS: u32 = 10;
/// Keys that few events share.
const COLD_KEYS: u32 = 1_000;
/// One transaction in so many is poison, from the first of them on.
const POISON_EVERY: u32 = 250;
const FIRST_POISON: u32 = 30;

/// How a transaction goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Event by event, committed.
    Commit,
    /// All events in one call, committed.
    Batch,
    /// Without a transaction of the application; no event has a key.
    Detached,
    /// The application returns an error.
    Rollback,
    /// The transaction is dropped.
    Dropped,
    /// These events are within a savepoint that is rolled back; the rest is committed.
    Savepoint(Range<usize>),
    /// With ids of the application: repeated until answered, and sometimes once more.
    Idempotent { again: bool },
    /// A deadly event and two behind it, of one key.
    Poison,
}

/// An event of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedEvent {
    pub(super) name: String,
    pub(super) key: Option<String>,
    pub(super) delay: Option<Duration>,
    pub(super) refused: bool,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) events: Vec<PlannedEvent>,
    /// The pause after it.
    pub(super) pause: Duration,
}

impl Plan {
    /// Transaction `number` of `publisher`.
    pub(super) fn of(seed: u64, publisher: u32, number: u32) -> Self {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (u64::from(publisher) << 40) ^ u64::from(number);
        let mut rng = fastrand::Rng::with_seed(mixed);
        let mut count = rng.usize(1..5);
        let kind = match rng.u32(0..100) {
            _ if number % POISON_EVERY == FIRST_POISON => Kind::Poison,
            0..8 => Kind::Batch,
            8..13 => Kind::Detached,
            13..22 => Kind::Rollback,
            22..26 => Kind::Dropped,
            26..36 => Kind::Savepoint(0..0),
            36..50 => Kind::Idempotent { again: rng.u32(0..3) == 0 },
            _ => Kind::Commit,
        };
        let kind = match kind {
            Kind::Batch => {
                count = rng.usize(2..40);
                Kind::Batch
            }
            Kind::Poison => {
                count = 3;
                Kind::Poison
            }
            Kind::Savepoint(_) => {
                let from = rng.usize(0..count);
                Kind::Savepoint(from..rng.usize(from..count) + 1)
            }
            other => other,
        };
        // One call has one delay.
        let delayed = kind == Kind::Batch && rng.u32(0..10) == 0;
        let events = (0..count)
            .map(|place| {
                let key = match (&kind, rng.u32(0..100)) {
                    (Kind::Poison, _) => Some(format!("poison-{publisher}-{number}")),
                    (Kind::Detached, _) | (_, 0..25) => None,
                    (_, 25..85) => Some(format!("hot-{}", rng.u32(0..HOT_KEYS))),
                    _ => Some(format!("cold-{}", rng.u32(0..COLD_KEYS))),
                };
                let alone = rng.u32(0..20) == 0 && !matches!(kind, Kind::Batch | Kind::Poison);
                PlannedEvent {
                    name: format!("{publisher}.{number}.{place}"),
                    key,
                    delay: (delayed || alone).then_some(Duration::from_millis(if delayed {
                        150
                    } else {
                        rng.u64(20..600)
                    })),
                    refused: rng.u32(0..80) == 0,
                }
            })
            .collect();
        Self { kind, events, pause: Duration::from_millis(rng.u64(0..50)) }
    }

    /// The events that are there when it commits.
    pub(super) fn kept(&self) -> impl Iterator<Item = &PlannedEvent> {
        let gone = match &self.kind {
            Kind::Savepoint(range) => range.clone(),
            Kind::Rollback | Kind::Dropped => 0..self.events.len(),
            _ => 0..0,
        };
        self.events.iter().enumerate().filter(move |(place, _)| !gone.contains(place)).map(|(_, event)| event)
    }

    /// Whether its events have rows in the application's table.
    pub(super) fn has_rows(&self) -> bool {
        self.kind != Kind::Detached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_repeat_and_have_every_kind() {
        let plans: Vec<Plan> = (0..1000).map(|number| Plan::of(7, 1, number)).collect();
        assert!((0..1000).all(|number| plans[number as usize] == Plan::of(7, 1, number)));
        let has = |wanted: fn(&Kind) -> bool| plans.iter().filter(|plan| wanted(&plan.kind)).count() > 2;
        assert!(has(|kind| *kind == Kind::Rollback) && has(|kind| *kind == Kind::Dropped));
        assert!(has(|kind| *kind == Kind::Poison) && has(|kind| matches!(kind, Kind::Idempotent { again: true })));
        let savepoint = |plan: &&Plan| matches!(&plan.kind, Kind::Savepoint(range) if !range.is_empty());
        assert!(plans.iter().filter(savepoint).any(|plan| plan.kept().count() > 0));
        assert!(plans.iter().filter(savepoint).all(|plan| plan.kept().count() < plan.events.len()));
    }
}
