//! Keywords as names.

use relaybus::registry::Consumers;
use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct r#Struct;

#[consumers]
impl r#Struct {
    #[consumer(OrderPlaced)]
    async fn r#match(&self, r#use: r#OrderPlaced) {
        let _ = r#use;
    }
}

#[test]
fn ids_have_no_hash() {
    assert!(Struct::ENTRIES[0].id.ends_with("::Struct::match"), "{}", Struct::ENTRIES[0].id);
}
