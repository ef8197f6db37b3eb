//! Events out of macros by example, with each part from outside.

use relaybus::Event;
use serde::{Deserialize, Serialize};

macro_rules! event {
    ($(#[$meta:meta])* $name:ident { $field:ident: $type:ty }, $text:literal) => {
        $(#[$meta])*
        #[derive(Event, Serialize, Deserialize)]
        #[event($text, key = $field)]
        struct $name {
            $field: $type,
        }
    };
    ($name:ident, $text:expr, key = $key:expr, validate = $check:path) => {
        #[derive(Event, Serialize, Deserialize)]
        #[event($text, key = $key, validate = $check)]
        struct $name(u8);
    };
}
event!(
    #[derive(Debug)]
    ByField { id: String },
    "by.field.v1"
);
event!(ByExpression, "by.expression.v1", key = |event| event.0, validate = check);

fn check(_: &ByExpression) -> Result<(), String> {
    Ok(())
}

macro_rules! event_inside {
    () => {
        #[derive(Event, Serialize, Deserialize)]
        #[event("inside.v1", key = id, crate = relaybus)]
        struct Inside {
            id: u8,
        }
    };
}
event_inside!();

#[test]
fn keys() {
    assert_eq!(ByField { id: "a".to_owned() }.ordering_key().unwrap().unwrap(), "a");
    assert_eq!(ByExpression(2).ordering_key().unwrap().unwrap(), "2");
    assert!(ByExpression(2).validate().is_ok());
    assert_eq!(Inside { id: 3 }.ordering_key().unwrap().unwrap(), "3");
}
