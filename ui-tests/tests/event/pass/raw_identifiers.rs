//! Keywords as names.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[allow(non_camel_case_types, reason = "a keyword as the name")]
#[derive(Event, Serialize, Deserialize)]
#[event("raw.v1", key = r#type.r#match)]
struct r#struct {
    r#type: r#Type,
}

#[derive(Serialize, Deserialize)]
struct r#Type {
    r#match: u8,
}

#[derive(Event, Serialize, Deserialize)]
#[event("raw.v1", key = r#mod::r#fn, validate = self::r#mod::r#use)]
struct r#Raw {}

mod r#mod {
    pub(super) fn r#fn(_: &super::Raw) -> u8 {
        7
    }

    pub(super) fn r#use(_: &super::Raw) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn keys() {
    assert_eq!(r#struct { r#type: Type { r#match: 5 } }.ordering_key().unwrap().unwrap(), "5");
    assert_eq!(Raw {}.ordering_key().unwrap().unwrap(), "7");
}
