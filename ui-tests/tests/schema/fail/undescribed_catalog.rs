//! What needs schemas, of a catalog that has none.

use relaybus::catalog::schema::{AsyncApi, CatalogSnapshot};
use relaybus::{Event, catalog, produce};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub struct OrderPlaced {}

#[catalog]
pub enum OrderEvents {
    OrderPlaced(OrderPlaced),
}

fn main() {
    let _ = CatalogSnapshot::of::<OrderEvents>();
    let _ = AsyncApi::new("Orders", "1.0.0").sends(produce::<OrderEvents>(), "orders");
}
