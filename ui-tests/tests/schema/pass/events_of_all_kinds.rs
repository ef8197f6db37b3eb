//! Schemas of events by whatever path: re-exported, renamed, generic, with a schema by hand, and a part of a catalog.

use relaybus::catalog::schema::{CatalogSnapshot, DescribedCatalog as _};
use relaybus::{Event, catalog};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

mod contracts {
    pub(super) use inner::OrderPlaced as Placed;

    mod inner {
        #[derive(relaybus::Event, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[event("order.placed.v1", key = 0.0)]
        pub(in super::super) struct OrderPlaced((u64, u8));
    }
}
use contracts::Placed as Ordered;

#[derive(Event, Serialize, Deserialize, JsonSchema)]
#[event("stock.changed.v1", key = Self::key)]
struct Changed<T> {
    to: T,
}

impl<T> Changed<T> {
    fn key(&self) -> &str {
        "stock"
    }
}

#[derive(Event, Serialize, Deserialize)]
#[event("order.cancelled.v1", key = |event: &Cancelled| event.order)]
struct Cancelled {
    order: u64,
}

impl JsonSchema for Cancelled {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cancelled".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "properties": { "order": { "type": "integer" } }, "required": ["order"] })
    }
}

/// No catalog with schemas has it, so it needs none.
#[derive(Event, Serialize, Deserialize)]
#[event("internal.v1")]
struct Internal {}

type Stock = Changed<std::collections::BTreeMap<String, u32>>;

#[catalog(name = "all-orders", schema)]
enum Everything {
    Placed(contracts::Placed),
    StockChanged(Stock),
    Cancelled(Cancelled),
    #[cfg(not(test))]
    Missing(Missing),
}

#[catalog(schema, of = Everything)]
enum Part {
    #[wire("Ordered")]
    Ordered(Ordered),
}

#[catalog]
enum Inside {
    Internal(Internal),
}

#[test]
fn described() {
    let schema = Everything::json_schema();
    assert_eq!(schema["oneOf"].as_array().unwrap().len(), 3);
    assert_eq!(Part::json_schema()["oneOf"][0]["x-wire-name"], "Ordered");
    let snapshot = CatalogSnapshot::of::<Everything>();
    let keys: Vec<_> = snapshot.events.values().map(|event| event.key.as_deref().unwrap()).collect();
    assert_eq!(keys, ["|event:&Cancelled|event.order", "0.0", "Self::key"]);
    assert!(matches!(Internal {}.into(), Inside::Internal(_)));
    assert!(
        matches!(Stock { to: std::iter::empty().collect() }.into(), Everything::StockChanged(changed) if changed.to.is_empty())
    );
    assert!(matches!(Cancelled { order: 1 }.into(), Everything::Cancelled(_)));
    fn takes(_: fn(Ordered) -> Part, _: fn(Ordered) -> Everything) {}
    takes(Part::Ordered, Everything::Placed);
}
