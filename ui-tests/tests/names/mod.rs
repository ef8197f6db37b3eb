//! Every name that generated code could take for the usual one, for the cases about shadowed names.

#![allow(dead_code, non_camel_case_types, reason = "that these names exist is what they are for")]

pub(crate) struct Result;
pub(crate) struct Option;
pub(crate) struct Some;
pub(crate) struct None;
pub(crate) struct Ok;
pub(crate) struct Err;
pub(crate) struct Box;
pub(crate) struct String;
pub(crate) struct Vec;
pub(crate) struct Event;
pub(crate) struct EventType;
pub(crate) struct OrderingKey;
pub(crate) struct Entry;
pub(crate) struct Handler;
pub(crate) struct Duration;
pub(crate) struct Self_;
pub(crate) struct str;
pub(crate) struct bool;
pub(crate) struct usize;
pub(crate) trait Send {}
pub(crate) trait Sync {}
pub(crate) trait Sized {}
pub(crate) trait Into {}
pub(crate) trait From {}
pub(crate) trait Serialize {}
pub(crate) trait DeserializeOwned {}
pub(crate) mod core {}
pub(crate) mod std {}
pub(crate) mod serde {}
pub(crate) mod relaybus {}
pub(crate) mod inventory {}
