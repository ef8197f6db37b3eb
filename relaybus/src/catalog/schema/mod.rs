//! Catalogs as contracts between teams: the JSON schema of every event, an AsyncAPI document, and a snapshot that tells
//! whether a change breaks somebody. Feature `schema`.
//!
//! `#[catalog(schema)]` asks for it, and the events of that catalog derive `schemars::JsonSchema`; other catalogs and their
//! events need nothing.
//!
//! ```
//! use relaybus::catalog::schema::{AsyncApi, CatalogSnapshot, DescribedCatalog};
//! use relaybus::{Event, catalog, produce};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// A customer placed an order.
//! #[derive(Event, Serialize, Deserialize, JsonSchema)]
//! #[event("order.placed.v1", key = order_id)]
//! pub struct OrderPlaced {
//!     order_id: String,
//!     total: u64,
//! }
//!
//! #[catalog(schema)]
//! pub enum OrderEvents {
//!     OrderPlaced(OrderPlaced),
//! }
//!
//! let schema = OrderEvents::json_schema();
//! assert_eq!(schema["$defs"]["OrderPlaced"]["required"], serde_json::json!(["order_id", "total"]));
//!
//! let document = AsyncApi::new("Orders", "1.0.0").sends(produce::<OrderEvents>(), "orders").to_json();
//! assert_eq!(document["channels"]["orders"]["address"], "orders");
//!
//! let committed = CatalogSnapshot::of::<OrderEvents>().to_text();
//! let comparison = CatalogSnapshot::parse(&committed)?.compare(&CatalogSnapshot::of::<OrderEvents>());
//! assert!(comparison.changes.is_empty());
//! # Ok::<(), relaybus::Error>(())
//! ```
//!
//! # Keeping a contract
//!
//! A snapshot is a file beside the code, committed with it. `relaybus_testing::catalog_snapshots!` is the test that compares
//! the two, `cargo relaybus catalog` the command that does the same for a workspace, writes snapshots and compares with an
//! earlier release. What they find, they say with its consequence: [`CatalogSnapshot::compare`] has the rules.

mod asyncapi;
mod canonical;
mod compare;
mod snapshot;

pub use asyncapi::{AsyncApi, MessageHeaders};
pub use compare::{Audience, Change, Comparison, Severity};
pub use snapshot::{CatalogSnapshot, EventSnapshot};

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::{Catalog, EventMeta, MemberOf};
use canonical::canonical;

/// An event with a JSON schema: every type that derives `schemars::JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "the event `{Self}` has no JSON schema",
    label = "does not implement `JsonSchema`",
    note = "derive it for the event and the types in it: `#[derive(schemars::JsonSchema)]`, with `schemars = \"1\"` in the dependencies",
    note = "or take `schema` out of `#[catalog(..)]`"
)]
pub trait Described {
    /// Its schema.
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> Described for T {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// What a described catalog knows of an event beside its [`EventMeta`].
#[derive(Clone, Copy, Debug)]
pub struct EventSchema {
    schema: fn(&mut SchemaGenerator) -> Schema,
    key: Option<&'static str>,
}

impl EventSchema {
    /// The schema of `E`, which is an event of the catalog `C`. For generated code.
    #[must_use]
    pub const fn of<C, E: MemberOf<C> + Described>() -> Self {
        Self { schema: E::schema, key: E::KEY }
    }
}

/// A catalog that describes its events. `#[catalog(schema)]` implements it.
#[diagnostic::on_unimplemented(
    message = "the catalog `{Self}` does not describe its events",
    label = "has no JSON schemas",
    note = "write `#[catalog(schema)]` on it, and derive `schemars::JsonSchema` for its events"
)]
pub trait DescribedCatalog: Catalog {
    /// The schemas of its events, in the order of [`Catalog::EVENTS`].
    const SCHEMAS: &'static [EventSchema];

    /// The JSON schema (draft 2020-12) of the whole catalog: one of its events, as its type and its payload. The schemas of
    /// the payloads are those that consumers read by, under `$defs`. The keys are sorted.
    ///
    /// Each event also tells `x-wire-name`, the name it has on the wire, and `x-ordering-key`, where it has one.
    #[must_use]
    fn json_schema() -> Value {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let events: Vec<Value> = described::<Self>().map(|event| event.envelope(&mut generator)).collect();
        let definitions = generator.take_definitions(true);
        canonical(&json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": Self::NAME,
            "oneOf": events,
            "$defs": definitions,
        }))
    }
}

/// An event with all that is known of it.
#[derive(Clone, Copy)]
struct DescribedEvent {
    meta: &'static EventMeta,
    described: EventSchema,
}

/// The events of a catalog, in its order.
fn described<C: DescribedCatalog>() -> impl Iterator<Item = DescribedEvent> {
    C::EVENTS.iter().zip(C::SCHEMAS).map(|(meta, described)| DescribedEvent { meta, described: *described })
}

impl DescribedEvent {
    fn payload(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.described.schema)(generator)
    }

    fn wire_name(&self) -> &'static str {
        self.meta.wire.unwrap_or(self.meta.event_type)
    }

    fn envelope(&self, generator: &mut SchemaGenerator) -> Value {
        let mut event = json!({
            "title": self.meta.name,
            "type": "object",
            "properties": { "type": { "const": self.meta.event_type }, "payload": self.payload(generator) },
            "required": ["type", "payload"],
            "x-wire-name": self.wire_name(),
        });
        if let Some(key) = self.described.key {
            event["x-ordering-key"] = json!(key);
        }
        event
    }
}

/// A schema that stands alone, with the definitions it uses. The one it is itself takes its place, unless it is a part of itself.
fn alone(schema: Schema, mut definitions: Map<String, Value>) -> Value {
    let mut schema = schema.to_value();
    let own = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix("#/$defs/")).map(str::to_owned);
    if let Some(own) = own.filter(|_| schema.as_object().is_some_and(|map| map.len() == 1)) {
        let mentions = format!("{:?}:\"#/$defs/{own}\"", "$ref");
        let is_part = definitions.values().any(|definition| definition.to_string().contains(&mentions));
        if let Some(definition) = definitions.get(&own).filter(|_| !is_part) {
            schema = definition.clone();
            definitions.remove(&own);
        }
    }
    if let (Value::Object(map), false) = (&mut schema, definitions.is_empty()) {
        map.insert("$defs".to_owned(), Value::Object(definitions));
    }
    canonical(&schema)
}

#[cfg(test)]
mod tests;
