//! Enums, unit structs and empty ones.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("unit.v1")]
struct Unit;

#[derive(Event, Serialize, Deserialize)]
#[event("empty.v1")]
struct Empty {}

#[derive(Event, Serialize, Deserialize)]
#[event("never.v1")]
enum Never {}

#[derive(Event, Serialize, Deserialize)]
#[event("changed.v1", key = Self::id)]
enum Changed {
    Placed { id: u32 },
    Closed,
}

impl Changed {
    const fn id(&self) -> Option<u32> {
        match self {
            Self::Placed { id } => Some(*id),
            Self::Closed => None,
        }
    }
}

#[test]
fn keys() {
    assert_eq!(Changed::Placed { id: 3 }.ordering_key().unwrap().unwrap(), "3");
    assert!(Changed::Closed.ordering_key().unwrap().is_none());
    assert!(Unit.ordering_key().unwrap().is_none());
    assert_eq!((Empty::TYPE.as_str(), Never::TYPE.as_str()), ("empty.v1", "never.v1"));
}
