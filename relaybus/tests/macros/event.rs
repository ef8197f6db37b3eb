//! `#[derive(Event)]`: types, keys and validation.

use std::borrow::Cow;

use relaybus::{Event, KeyValue};
use serde::{Deserialize, Serialize};

fn key_of(event: &impl Event) -> Option<String> {
    event.ordering_key().unwrap().map(|key| key.to_string())
}

#[derive(Event, Serialize, Deserialize)]
#[event("plain.v1")]
struct Plain {
    #[allow(dead_code, reason = "only its presence matters")]
    note: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event("field.v1", key = order_id)]
struct Field {
    order_id: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event("nested.v1", key = customer.ids.0)]
struct Nested {
    customer: Customer,
}

#[derive(Serialize, Deserialize)]
struct Customer {
    ids: (Option<u64>, String),
}

#[derive(Event, Serialize, Deserialize)]
#[event("tuple.v1", key = 0.1)]
struct Tuple((u8, i64));

#[derive(Event, Serialize, Deserialize)]
#[event(key = Self::number, "by.function.v1", validate = below_hundred)]
struct ByFunction {
    number: u32,
}

impl ByFunction {
    fn number(&self) -> u32 {
        self.number
    }
}

#[derive(Debug, PartialEq)]
struct TooMuch(u32);
impl std::fmt::Display for TooMuch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is too much", self.0)
    }
}
impl std::error::Error for TooMuch {}

fn below_hundred(event: &ByFunction) -> Result<(), TooMuch> {
    if event.number < 100 { Ok(()) } else { Err(TooMuch(event.number)) }
}

#[derive(Event, Serialize, Deserialize)]
#[event("enum.v1", key = self::borrowed_key)]
enum Either {
    Left { id: String },
    Right(u8),
}

fn borrowed_key(event: &Either) -> Option<&str> {
    match event {
        Either::Left { id } => Some(id),
        Either::Right(_) => None,
    }
}

#[derive(Event, Serialize, Deserialize)]
#[event("closure.v1", key = |event| format!("{}/{}", event.a, event.b))]
struct ByClosure {
    a: u8,
    b: u8,
}

#[derive(Event, Serialize, Deserialize)]
#[event("borrowing.closure.v1", key = |event| &event.name)]
struct ByBorrowingClosure {
    name: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event("generic.v1", key = key)]
struct Generic<T, const N: usize>
where
    T: Clone,
{
    key: Key,
    value: T,
}

#[derive(Serialize, Deserialize)]
struct Key(String);

impl KeyValue for Key {
    fn key_text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.0))
    }
}

#[derive(Event, Serialize, Deserialize)]
#[event("unit.v1")]
struct Unit;

#[test]
fn the_type_is_the_text_of_the_attribute() {
    assert_eq!(Plain::TYPE, "plain.v1");
    assert_eq!(ByFunction::TYPE, "by.function.v1");
    assert_eq!(Generic::<u8, 3>::TYPE, "generic.v1");
    assert_eq!(Unit::TYPE, "unit.v1");
}

#[test]
fn keys_come_from_fields_functions_and_closures() {
    assert_eq!(key_of(&Plain { note: "x".into() }), None);
    assert_eq!(key_of(&Field { order_id: "o-1".into() }).as_deref(), Some("o-1"));
    let customer = |id| Nested { customer: Customer { ids: (id, String::new()) } };
    assert_eq!(key_of(&customer(Some(7))).as_deref(), Some("7"));
    assert_eq!(key_of(&customer(None)), None);
    assert_eq!(key_of(&Tuple((1, -2))).as_deref(), Some("-2"));
    assert_eq!(key_of(&ByFunction { number: 9 }).as_deref(), Some("9"));
    assert_eq!(key_of(&Either::Left { id: "l".into() }).as_deref(), Some("l"));
    assert_eq!(key_of(&Either::Right(1)), None);
    assert_eq!(key_of(&ByClosure { a: 1, b: 2 }).as_deref(), Some("1/2"));
    assert_eq!(key_of(&ByBorrowingClosure { name: "n".into() }).as_deref(), Some("n"));
    assert_eq!(key_of(&Generic::<_, 1> { key: Key("own".into()), value: 1_u8 }).as_deref(), Some("own"));
}

#[test]
fn an_empty_key_is_an_error() {
    let error = Field { order_id: String::new() }.ordering_key().unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
}

#[test]
fn validation_is_the_functions() {
    assert!(ByFunction { number: 99 }.validate().is_ok());
    let error = ByFunction { number: 100 }.validate().unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&TooMuch(100)));
    assert!(Plain { note: String::new() }.validate().is_ok());
}
