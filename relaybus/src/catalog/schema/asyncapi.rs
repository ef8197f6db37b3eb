//! AsyncAPI 3 documents: what a service sends and receives, for people and tools of any language.

use std::collections::BTreeMap;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::canonical::canonical;
use super::{DescribedCatalog, DescribedEvent, described};
use crate::catalog::{CatalogRole, CatalogRoute, Consume, Produce, Role, RoleKind};
use crate::transport::Route;

/// An [AsyncAPI](https://www.asyncapi.com) 3.0 document of a service: channels, what is sent to them and received from them,
/// messages under their wire names with headers and payload.
///
/// ```
/// # use relaybus::{Event, catalog, consume, produce}; use relaybus::catalog::schema::AsyncApi;
/// # #[derive(Event, serde::Serialize, serde::Deserialize, schemars::JsonSchema)] #[event("order.placed.v1")] struct OrderPlaced {}
/// # #[derive(Event, serde::Serialize, serde::Deserialize, schemars::JsonSchema)] #[event("order.shipped.v1")] struct OrderShipped {}
/// # #[catalog(schema)] enum OrderEvents { OrderPlaced(OrderPlaced), OrderShipped(OrderShipped) }
/// let document = AsyncApi::new("Orders", "1.2.0")
///     .description("Takes orders")
///     .sends(produce::<OrderEvents>().only::<(OrderPlaced,)>(), "orders")
///     .receives(consume::<OrderEvents>().only::<(OrderShipped,)>(), "shipments")
///     .to_json();
/// assert_eq!(document["operations"]["send_orders"]["action"], "send");
/// assert_eq!(document["components"]["messages"]["OrderShipped"]["name"], "order.shipped.v1");
/// ```
///
/// Payloads are described as consumers read them: a field that may be absent is not required. The headers are those of the
/// [`MessageHeaders`] that are chosen. [`AsyncApi::to_json`] sorts the keys.
#[derive(Debug)]
#[must_use = "a document is made by `to_json`"]
pub struct AsyncApi {
    info: Map<String, Value>,
    headers: MessageHeaders,
    generator: SchemaGenerator,
    channels: BTreeMap<String, Channel>,
    messages: Vec<Message>,
}

/// How the attributes of an event travel beside its payload: CloudEvents 1.0 in binary mode, as the broker has headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageHeaders {
    /// `ce_id`, `ce_type`, and the ordering key as the record's key. The default.
    #[default]
    Kafka,
    /// `cloudEvents:id`, `cloudEvents:type`: those of AMQP.
    Amqp,
    /// Not described, for codecs of one's own.
    Undescribed,
}

#[derive(Debug)]
struct Channel {
    key: String,
    /// Messages by their key.
    messages: Vec<String>,
    sent: Vec<String>,
    received: Vec<String>,
}

#[derive(Debug)]
struct Message {
    key: String,
    event_type: &'static str,
    wire: String,
    json: Value,
}

/// What the service does with a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Send,
    Receive,
}

impl AsyncApi {
    /// A document with the title and the version of the service.
    pub fn new(title: impl Into<String>, version: impl Into<String>) -> Self {
        let mut settings = SchemaSettings::draft07();
        settings.definitions_path = "/components/schemas".into();
        let mut info = Map::new();
        info.insert("title".to_owned(), json!(title.into()));
        info.insert("version".to_owned(), json!(version.into()));
        Self {
            info,
            headers: MessageHeaders::default(),
            generator: settings.into_generator(),
            channels: BTreeMap::new(),
            messages: Vec::new(),
        }
    }

    /// A document of a catalog alone, as its publisher has it: each event is sent to a channel of its own, its event type.
    pub fn of_catalog<C: DescribedCatalog>(version: impl Into<String>) -> Self {
        let role: Role<C, Produce> = crate::catalog::produce();
        Self::new(C::NAME, version).route(&Route::catalog(role, ""))
    }

    /// What the service does, in Markdown.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.insert("description".to_owned(), json!(description.into()));
        self
    }

    /// How the attributes of events travel. Set it before the events. Defaults to [`MessageHeaders::Kafka`].
    pub fn headers(mut self, headers: MessageHeaders) -> Self {
        self.headers = headers;
        self
    }

    /// The service sends these events to `destination`.
    pub fn sends<C: DescribedCatalog>(mut self, role: Role<C, Produce>, destination: impl Into<String>) -> Self {
        let destination = destination.into();
        self.add(role, Action::Send, |_| destination.clone(), |_| None);
        self
    }

    /// The service sends the events of this route where it sends them, under its wire names.
    pub fn route<C: DescribedCatalog>(mut self, route: &CatalogRoute<C>) -> Self {
        let destination = |event: &DescribedEvent| route.destination_of(event.meta);
        self.add(route.role(), Action::Send, destination, |event| route.wire_name(event.meta).map(str::to_owned));
        self
    }

    /// The service receives these events from `destination`.
    pub fn receives<C: DescribedCatalog>(mut self, role: Role<C, Consume>, destination: impl Into<String>) -> Self {
        let destination = destination.into();
        self.add(role, Action::Receive, |_| destination.clone(), |_| None);
        self
    }

    fn add<C: DescribedCatalog, K: RoleKind>(
        &mut self,
        role: Role<C, K>,
        action: Action,
        destination: impl Fn(&DescribedEvent) -> String,
        wire: impl Fn(&DescribedEvent) -> Option<String>,
    ) {
        let role = CatalogRole::from(role);
        for event in described::<C>() {
            if !role.events().any(|selected| selected.hashed().is(&event.meta.hashed())) {
                continue;
            }
            let wire = wire(&event).unwrap_or_else(|| event.wire_name().to_owned());
            let message = self.message(role.catalog, event, wire);
            let channel = self.channel(destination(&event));
            let uses = if action == Action::Send { &mut channel.sent } else { &mut channel.received };
            for list in [uses, &mut channel.messages] {
                if !list.contains(&message) {
                    list.push(message.clone());
                }
            }
        }
    }

    fn channel(&mut self, address: String) -> &mut Channel {
        let taken = |key: &str| self.channels.values().any(|channel| channel.key == key);
        let key = unique(&usable_as_key(&address), taken);
        let channel = || Channel { key, messages: Vec::new(), sent: Vec::new(), received: Vec::new() };
        self.channels.entry(address).or_insert_with(channel)
    }

    /// The key of an event's message, which is made where there is none yet.
    fn message(&mut self, catalog: &str, event: DescribedEvent, wire: String) -> String {
        let is_same = |known: &&Message| known.event_type == event.meta.event_type && known.wire == wire;
        if let Some(known) = self.messages.iter().find(is_same) {
            return known.key.clone();
        }
        let taken = |key: &str| self.messages.iter().any(|known| known.key == key);
        let name = event.meta.name;
        let key =
            if taken(name) { unique(&usable_as_key(&format!("{catalog}.{name}")), taken) } else { name.to_owned() };
        let mut json = json!({
            "name": wire,
            "title": name,
            "contentType": "application/json",
            "payload": event.payload(&mut self.generator),
        });
        self.headers.describe(&mut json, &wire, event.described.key);
        self.messages.push(Message { key: key.clone(), event_type: event.meta.event_type, wire, json });
        key
    }

    /// The document.
    #[must_use]
    pub fn to_json(mut self) -> Value {
        let (mut channels, mut operations) = (Map::new(), Map::new());
        for (address, channel) in &self.channels {
            let messages = channel
                .messages
                .iter()
                .map(|message| (message.clone(), reference(&["components", "messages", message])));
            let messages: Map<String, Value> = messages.collect();
            channels.insert(channel.key.clone(), json!({ "address": address, "messages": messages }));
            for (action, used) in [("send", &channel.sent), ("receive", &channel.received)] {
                if !used.is_empty() {
                    let messages: Vec<Value> = used
                        .iter()
                        .map(|message| reference(&["channels", &channel.key, "messages", message]))
                        .collect();
                    let operation = json!({ "action": action, "channel": reference(&["channels", &channel.key]), "messages": messages });
                    operations.insert(format!("{action}_{}", channel.key), operation);
                }
            }
        }
        let messages: Map<String, Value> =
            self.messages.into_iter().map(|message| (message.key, message.json)).collect();
        canonical(&json!({
            "asyncapi": "3.0.0",
            "info": self.info,
            "defaultContentType": "application/json",
            "channels": channels,
            "operations": operations,
            "components": { "messages": messages, "schemas": self.generator.take_definitions(true) },
        }))
    }
}

fn reference(path: &[&str]) -> Value {
    json!({ "$ref": format!("#/{}", path.join("/")) })
}

/// A key has letters, digits and `. _ -` only; a destination may have more.
fn usable_as_key(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' }).collect()
}

fn unique(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}

impl MessageHeaders {
    fn describe(self, message: &mut Value, wire: &str, key: Option<&str>) {
        let prefix = match self {
            Self::Kafka => "ce_",
            Self::Amqp => "cloudEvents:",
            Self::Undescribed => return,
        };
        let named = |name: &str| format!("{prefix}{name}");
        let (text, content_type) = (json!({ "type": "string" }), self.content_type());
        let mut properties = Map::new();
        properties.insert(named("specversion"), json!({ "type": "string", "const": "1.0" }));
        properties.insert(
            named("id"),
            json!({ "type": "string", "description": "the same whenever the event is sent again" }),
        );
        properties.insert(named("type"), json!({ "type": "string", "const": wire }));
        properties.insert(named("source"), json!({ "type": "string", "description": "the service that published it" }));
        properties.insert(named("time"), json!({ "type": "string", "format": "date-time" }));
        properties.insert(content_type.to_owned(), json!({ "type": "string", "const": "application/json" }));
        let required =
            [&named("specversion"), &named("id"), &named("type"), &named("source"), &named("time"), content_type];
        let required = json!(required);
        properties.insert(named("correlationid"), text.clone());
        properties.insert(named("causationid"), text.clone());
        if let Some(key) = key {
            let subject = json!({ "type": "string", "description": format!("the ordering key: {key}") });
            if self == Self::Kafka {
                message["bindings"] = json!({ "kafka": { "key": subject, "bindingVersion": "0.5.0" } });
            }
            properties.insert(named("subject"), subject);
        }
        message["headers"] = json!({ "type": "object", "properties": properties, "required": required });
        message["correlationId"] = json!({ "location": format!("$message.header#/{}", named("correlationid")) });
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Amqp => "cloudEvents:datacontenttype",
            Self::Kafka | Self::Undescribed => "content-type",
        }
    }
}
