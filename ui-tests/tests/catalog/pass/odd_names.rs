//! Names of all kinds: of the prelude, of ours, long, in other letters, with digits and underscores, and documentation with signs.
#![deny(warnings, missing_docs, clippy::pedantic)]
#![allow(unreachable_pub, reason = "as in a library")]

mod events {
    use relaybus::Event;
    use serde::{Deserialize, Serialize};

    macro_rules! events {
        ($($name:ident $event_type:literal)+) => {
            $(
                #[doc = concat!("\"", stringify!($name), "\" {0} \\ */ <b>")]
                #[derive(Event, Serialize, Deserialize)]
                #[event($event_type)]
                pub struct $name {}
            )+
        };
    }
    events! {
        Event_ "a.1" Catalog "a.2" Envelope "a.3" HandlerContext "a.4" Option "a.5" Größe "a.6" A1B2c3 "a.7"
        TheCustomerOfThisOrderHasChangedTheirMindAboutTheAddressToWhichTheParcelIsToBeSentAndHasGivenUsAnotherOne "a.8"
        T "a.9" __T "a.10" H "a.11" E "a.12"
    }
}

/// "All" of {them}: `\n` */ <b>
#[relaybus::catalog(name = "odd.names-1")]
pub enum r#All {
    /// "Quoted" {} \ */
    Self_(events::Event_),
    /// .
    Catalog(events::Catalog),
    /// .
    Envelope(events::Envelope),
    /// .
    HandlerContext(events::HandlerContext),
    /// .
    None(events::Option),
    /// .
    Größe(events::Größe),
    /// .
    A1B2c3(events::A1B2c3),
    /// .
    #[wire("\"quoted\" {0} \\ ü")]
    TheCustomerOfThisOrderHasChangedTheirMindAboutTheAddressToWhichTheParcelIsToBeSentAndHasGivenUsAnotherOne(
        events::TheCustomerOfThisOrderHasChangedTheirMindAboutTheAddressToWhichTheParcelIsToBeSentAndHasGivenUsAnotherOne,
    ),
    /// .
    T(events::T),
    /// .
    __T(events::__T),
    /// .
    H(events::H),
    /// .
    E(events::E),
}

#[test]
fn their_methods_have_names_of_their_own() {
    use relaybus::Catalog;

    let names: Vec<&str> = All::EVENTS.iter().map(|event| event.name).collect();
    assert_eq!(names[..3], ["Self_", "Catalog", "Envelope"]);
    assert_eq!((All::NAME, names.len()), ("odd.names-1", 12));
}
