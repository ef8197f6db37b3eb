//! An event and its functions inside a function.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[test]
fn local() {
    #[derive(Event, Serialize, Deserialize)]
    #[event("local.v1", key = self::key, validate = accept)]
    struct Local {
        id: u8,
    }

    fn accept(event: &Local) -> Result<(), String> {
        if event.id > 0 { Ok(()) } else { Err("zero".to_owned()) }
    }

    assert_eq!(Local { id: 1 }.ordering_key().unwrap().unwrap(), "one");
    assert_eq!(Local { id: 0 }.validate().unwrap_err().to_string(), "zero");
}

fn key<T>(_: &T) -> &'static str {
    "one"
}
