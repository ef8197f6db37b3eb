//! Parameters of a catalog.

use relaybus::{Event, catalog};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[derive(Event, Serialize, Deserialize)]
#[event("order.shipped.v1")]
pub struct OrderShipped {}

#[catalog]
enum Orders<'a, T: Event, const N: usize>
where
    T: Clone,
{
    OrderPlaced(OrderPlaced),
    Changed(T),
    Borrowed(&'a [u8; N]),
}

fn main() {}
