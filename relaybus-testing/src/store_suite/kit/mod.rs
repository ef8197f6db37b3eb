//! What the cases share: events to append, a rig of stores, and a worker that takes turns.

mod draft;
mod rig;
mod worker;

pub use draft::{Draft, batch, event};
pub use rig::{Rig, append, append_in, begin};
pub use worker::Worker;

use std::time::Duration;

use relaybus::store::{Claimed, Verdict};
use relaybus::{HandlerId, Timestamp};

/// How long a session of the suite lives without a renewal.
pub const LEASE: Duration = Duration::from_secs(30);

/// Turns without work after which a worker believes that there is none: enough for a store that first has to notice a
/// dead session, then to take what it owned, then to claim, and that looks at its backlog in pieces.
pub const LOOKS: usize = 6;

/// A point of the suite's time: seconds after its start.
#[must_use]
pub fn at(seconds: i64) -> Timestamp {
    const START: i64 = 1_767_225_600_000_000; // 2026-01-01T00:00:00Z
    Timestamp::from_micros(START + seconds * 1_000_000)
}

/// When a session opened or renewed at second 0 to 60 is dead for every store, whatever margin it leaves for clocks.
#[must_use]
pub fn after_the_lease() -> Timestamp {
    at(660)
}

/// The handler of that name.
#[must_use]
pub fn handler(name: &str) -> HandlerId {
    HandlerId::new(name).unwrap()
}

/// The ids of the events.
#[must_use]
pub fn ids(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|claimed| claimed.event.id.as_str()).collect()
}

/// The ids of the events, sorted.
#[must_use]
pub fn sorted_ids(claimed: &[Claimed]) -> Vec<&str> {
    let mut ids = ids(claimed);
    ids.sort_unstable();
    ids
}

/// The verdict of a handler that failed and runs again at `due_at`.
#[must_use]
pub fn again(due_at: Timestamp) -> Verdict {
    Verdict::Reschedule { due_at, error: failure() }
}

/// The verdict of a handler that failed for good.
#[must_use]
pub fn buried() -> Verdict {
    Verdict::Bury { error: failure(), charge: true }
}

/// The failure that [`again`] and [`buried`] report, as JSON text.
#[must_use]
pub fn failure() -> String {
    r#"{"name":"Error","message":"it said \"no\" – für immer"}"#.to_owned()
}
