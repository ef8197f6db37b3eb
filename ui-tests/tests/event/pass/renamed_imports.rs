//! The derive by path and under another name.

use relaybus::Event as DomainEvent;

#[derive(DomainEvent, serde::Serialize, serde::Deserialize)]
#[event("renamed.v1")]
struct Renamed;

mod bare {
    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
    #[event("bare.v1")]
    pub(super) struct Bare;
}

#[test]
fn types() {
    assert_eq!((Renamed::TYPE.as_str(), bare::Bare::TYPE.as_str()), ("renamed.v1", "bare.v1"));
}
