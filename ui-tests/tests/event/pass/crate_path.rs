//! relaybus through a re-export.

mod framework {
    pub(crate) use relaybus as bus;
}

use framework::bus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("first.v1", key = id, crate = framework::bus)]
struct First {
    id: u8,
}

mod inner {
    use super::*;

    #[derive(Event, Serialize, Deserialize)]
    #[event(crate = super::framework::bus, "second.v1")]
    pub(super) struct Second;
}

#[test]
fn types() {
    assert_eq!((First::TYPE.as_str(), inner::Second::TYPE.as_str()), ("first.v1", "second.v1"));
    assert_eq!(First { id: 1 }.ordering_key().unwrap().unwrap(), "1");
}
