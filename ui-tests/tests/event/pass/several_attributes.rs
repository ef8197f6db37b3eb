//! Arguments in several attributes, some of them conditional.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("split.v1")]
#[cfg_attr(test, event(key = id))]
#[cfg_attr(not(test), event(key = other))]
struct Split {
    id: u8,
    other: u8,
}

#[test]
fn key() {
    assert_eq!(Split { id: 1, other: 2 }.ordering_key().unwrap().unwrap(), "1");
}
