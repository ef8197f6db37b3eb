//! Keywords as names.

use relaybus::registry::HandlerList;
use relaybus::{Event, State, consumer, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct r#OrderPlaced {}

#[allow(non_camel_case_types, reason = "a keyword as the name")]
struct r#type;

#[consumer(r#OrderPlaced)]
async fn r#match(r#use: r#OrderPlaced, r#fn: State<r#type>) {
    let _ = (r#use, r#fn);
}

#[consumer(OrderPlaced, id = "raw", companion = r#Loop)]
async fn r#loop<'r#a>(_: &'r#a OrderPlaced, _: &'r#a relaybus::HandlerContext) {}

#[test]
fn ids_have_no_hash() {
    let list: HandlerList<relaybus::memory::Memory> = handlers![r#match, r#Loop];
    assert!(list.entries()[0].id.ends_with("raw_identifiers::match"), "{list:?}");
    assert_eq!(list.entries()[1].id, "raw");
}
