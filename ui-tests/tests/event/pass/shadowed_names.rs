//! Every name of the prelude and of relaybus taken by something else.

#[allow(unused_imports, reason = "that they are in scope is the case")]
use crate::names::{
    Box, Entry, Err, Event, EventType, From, Handler, Into, None, Ok, Option, OrderingKey, Result, Send, Serialize,
    Some, String, Sync, Vec, core, inventory, relaybus, std,
};

#[derive(::relaybus::Event, ::serde::Serialize, ::serde::Deserialize)]
#[event("shadowed.v1", key = id, validate = check)]
struct Shadowed<T> {
    id: u8,
    value: T,
}

fn check<T>(_: &Shadowed<T>) -> ::std::result::Result<(), ::std::fmt::Error> {
    ::std::result::Result::Ok(())
}

#[test]
fn implements_the_trait() {
    assert_eq!(<Shadowed<u8> as ::relaybus::Event>::TYPE, "shadowed.v1");
}
