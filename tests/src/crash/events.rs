//! The events of the crash test. A name says which publisher, transaction and place an event is of.

use relaybus::Event;
use serde::{Deserialize, Serialize};

/// What publishers publish.
#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("crash.moved.v1", key = key)]
pub(super) struct Moved {
    pub(super) name: String,
    pub(super) key: Option<String>,
    /// One handler refuses it for good.
    pub(super) refused: bool,
}

/// What the transactional handler publishes for each.
#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("crash.booked.v1", key = key)]
pub(super) struct Booked {
    pub(super) name: String,
    pub(super) key: Option<String>,
}

/// An event whose handler may end the process.
#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("crash.poison.v1", key = key)]
pub(super) struct Poison {
    pub(super) name: String,
    pub(super) key: Option<String>,
    pub(super) deadly: bool,
}
