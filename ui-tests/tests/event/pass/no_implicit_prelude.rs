//! Nothing of the standard library in scope.

#![no_implicit_prelude]

#[derive(::relaybus::Event, ::serde::Serialize, ::serde::Deserialize)]
#[event("plain.v1", key = id, validate = check)]
struct Plain<T> {
    id: ::std::string::String,
    value: T,
}

fn check<T>(_: &Plain<T>) -> ::std::result::Result<(), ::std::string::String> {
    ::std::result::Result::Ok(())
}

#[derive(::relaybus::Event, ::serde::Serialize, ::serde::Deserialize)]
#[event("closure.v1", key = |event| event.id)]
struct Closure {
    id: ::std::primitive::u8,
}

#[::std::prelude::v1::test]
fn keys() {
    use ::relaybus::Event as _;
    let key = Closure { id: 5 }.ordering_key().unwrap().unwrap();
    ::std::assert_eq!(key, "5");
    ::std::assert!(Plain { id: ::std::convert::Into::into("a"), value: 1 }.validate().is_ok());
}
