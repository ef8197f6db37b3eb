//! What a catalog looked like: a file that is committed and compared.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::canonical::{canonical, merged, reads, writes};
use super::compare::{Comparison, compare};
use super::{DescribedCatalog, DescribedEvent, alone, described};
use crate::error::{Error, Result};

/// The version of the file's form.
const FORMAT: u64 = 1;

/// What a catalog promises: its name, and for each event its type, names, ordering key and payload. It is read from a
/// catalog or from a file, and compared.
///
/// ```
/// # use relaybus::{Event, catalog}; use relaybus::catalog::schema::CatalogSnapshot;
/// # #[derive(Event, serde::Serialize, serde::Deserialize, schemars::JsonSchema)] #[event("order.placed.v1")]
/// # struct OrderPlaced { order_id: String }
/// # #[catalog(schema)] enum OrderEvents { OrderPlaced(OrderPlaced) }
/// let text = CatalogSnapshot::of::<OrderEvents>().to_text();
/// assert_eq!(CatalogSnapshot::parse(&text)?, CatalogSnapshot::of::<OrderEvents>());
/// # Ok::<(), relaybus::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CatalogSnapshot {
    /// The name of the catalog.
    pub catalog: String,
    /// Its events, by event type.
    pub events: BTreeMap<String, EventSnapshot>,
}

/// What a catalog promises about an event.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventSnapshot {
    /// The name of its variant.
    pub name: String,
    /// Its name on the wire: the event type, where it has no other.
    pub wire: String,
    /// Where its ordering key comes from.
    pub key: Option<String>,
    /// The JSON schema that consumers read it by.
    pub reads: Value,
    /// The JSON schema of what publishers write: fields that readers do without may always be there.
    pub writes: Value,
}

impl CatalogSnapshot {
    /// The catalog as it is in this program.
    #[must_use]
    pub fn of<C: DescribedCatalog>() -> Self {
        let events = described::<C>().map(|event| (event.meta.event_type.to_owned(), event.snapshot()));
        Self { catalog: C::NAME.to_owned(), events: events.collect() }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when it is no snapshot of a catalog.
    pub fn parse(text: &str) -> Result<Self> {
        if text.lines().any(|line| line.starts_with("<<<<<<<")) {
            return Err(not_a_snapshot("it has the marks of a merge with conflicts"));
        }
        let file: Value =
            serde_json::from_str(text).map_err(|error| not_a_snapshot(&format!("it is not JSON, {error}")))?;
        if file["relaybusCatalog"] != json!(FORMAT) {
            return Err(not_a_snapshot("`relaybusCatalog`, the version of its form, is not 1"));
        }
        let Value::Object(events) = &file["events"] else { return Err(not_a_snapshot("it has no `events`")) };
        let events = events.iter().map(|(event_type, event)| Ok((event_type.clone(), parsed(event_type, event)?)));
        Ok(Self { catalog: text_at(&file, "catalog")?, events: events.collect::<Result<_>>()? })
    }

    /// The text of the file: the same for the same catalog, with sorted keys and a line break at its end.
    #[must_use]
    pub fn to_text(&self) -> String {
        let events: Map<String, Value> =
            self.events.iter().map(|(event_type, event)| (event_type.clone(), event.to_json(event_type))).collect();
        let file = json!({ "relaybusCatalog": FORMAT, "catalog": self.catalog, "events": events });
        format!("{:#}\n", canonical(&file))
    }

    /// What changes for whom when `new` takes the place of this one. The oldest severity first, then by event and field.
    ///
    /// | change | verdict |
    /// | --- | --- |
    /// | an event or an optional field is added, a rule is relaxed for readers only, documentation changes | compatible |
    /// | a value or a variant is added to an enum | with care: deploy consumers first, those already deployed cannot decode it |
    /// | unknown fields are refused that were ignored; numbers get digits that readers drop | with care |
    /// | a field is removed, or may be left out or null where it never was | breaks deployed consumers |
    /// | a required field is added, or an optional one becomes required | breaks events already stored, and publishers not upgraded |
    /// | a value or a variant is removed from an enum | breaks events already stored, and publishers not upgraded |
    /// | a set becomes a list, or the other way round | with care: duplicates are read once |
    /// | a field has another type, range, format or length | breaks whom the new rule or value does not fit |
    /// | an event is removed, or has another type, wire name, ordering key or variant; the catalog has another name | breaks |
    ///
    /// It compares what consumers read by with what publishers write, so a field with `#[serde(default)]` or an `Option` may
    /// come and stay. It follows `$ref`, `allOf`, `anyOf`, `oneOf`, tagged and untagged enums, maps and tuples; a rule that it
    /// does not know counts as changed when it is not the same on both sides.
    ///
    /// It sees what JSON schemas tell. They do not tell `#[serde(alias)]` and `#[serde(other)]`, so a field or value that is
    /// read by these alone counts as removed; nor the range of numbers that are keys of a map, so a `BTreeMap<u64, _>` in
    /// place of a `BTreeMap<u8, _>` goes unnoticed. A type that never could read what it writes has not changed by that.
    #[must_use]
    pub fn compare(&self, new: &Self) -> Comparison {
        compare(self, new)
    }
}

impl DescribedEvent {
    fn snapshot(&self) -> EventSnapshot {
        let side = |settings: SchemaSettings| {
            let mut generator = settings.into_generator();
            let schema = self.payload(&mut generator);
            alone(schema, generator.take_definitions(true))
        };
        EventSnapshot {
            name: self.meta.name.to_owned(),
            wire: self.wire_name().to_owned(),
            key: self.described.key.map(str::to_owned),
            reads: side(SchemaSettings::draft2020_12()),
            writes: side(SchemaSettings::draft2020_12().for_serialize()),
        }
    }
}

impl EventSnapshot {
    fn to_json(&self, event_type: &str) -> Value {
        let mut event = json!({ "name": self.name });
        if self.wire != event_type {
            event["wire"] = json!(self.wire);
        }
        if let Some(key) = &self.key {
            event["key"] = json!(key);
        }
        match merged(&self.reads, &self.writes) {
            Some(both) => event["payload"] = both,
            None => {
                event["reads"] = self.reads.clone();
                event["writes"] = self.writes.clone();
            }
        }
        event
    }
}

fn parsed(event_type: &str, event: &Value) -> Result<EventSnapshot> {
    let (reads, writes) = match event.get("payload") {
        Some(both) => (reads(both), writes(both)),
        None => match (event.get("reads"), event.get("writes")) {
            (Some(reads), Some(writes)) => (reads.clone(), writes.clone()),
            _ => return Err(not_a_snapshot(&format!("the event `{event_type}` has no `payload`"))),
        },
    };
    let optional = |name: &str| match event.get(name) {
        None => Ok(None),
        Some(_) => text_at(event, name).map(Some),
    };
    Ok(EventSnapshot {
        name: text_at(event, "name")?,
        wire: optional("wire")?.unwrap_or_else(|| event_type.to_owned()),
        key: optional("key")?,
        reads,
        writes,
    })
}

fn text_at(value: &Value, name: &str) -> Result<String> {
    value[name].as_str().map(str::to_owned).ok_or_else(|| not_a_snapshot(&format!("`{name}` is no text")))
}

fn not_a_snapshot(why: &str) -> Error {
    Error::configuration(format!(
        "this is not the snapshot of a catalog ({why}): take the committed file, or write it anew with \
         `cargo relaybus catalog update --accept`"
    ))
}
