//! Type parameters, bounds, defaults and constants.

use relaybus::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("changed.v1", key = id)]
struct Changed<T: Clone = u8, const N: usize = 1>
where
    T: PartialEq,
{
    id: String,
    before: Option<T>,
    after: T,
}

#[derive(Event, Serialize, Deserialize)]
#[event("either.v1")]
enum Either<A, B> {
    Left(A),
    Right(B),
}

fn event_type<E: Event>() -> String {
    E::TYPE.to_string()
}

#[test]
fn implements_the_trait() {
    assert_eq!(event_type::<Changed>(), "changed.v1");
    assert_eq!(event_type::<Changed<String, 7>>(), "changed.v1");
    assert_eq!(event_type::<Either<u8, Vec<Changed>>>(), "either.v1");
    let event: Changed = Changed { id: "a".to_owned(), before: None, after: 5 };
    assert_eq!(event.ordering_key().unwrap().unwrap(), "a");
}
