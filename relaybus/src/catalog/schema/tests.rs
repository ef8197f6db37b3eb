//! Schemas, snapshots and documents of a catalog whose events have what serde offers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AsyncApi, CatalogSnapshot, DescribedCatalog, MessageHeaders};
use crate::{Event, Route, catalog, consume, produce};

/// A customer placed an order.
#[derive(Event, Serialize, Deserialize, JsonSchema)]
#[event("order.placed.v1", key = customer.id)]
struct OrderPlaced {
    customer: Customer,
    /// What is bought.
    lines: Vec<Line>,
    note: Option<String>,
    #[serde(default)]
    coupons: Vec<String>,
    payment: Payment,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Customer {
    id: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    product_id: u64,
    amount: u8,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Payment {
    Invoice,
    Card { number: String },
}

mod elsewhere {
    use super::{Deserialize, Event, JsonSchema, Serialize};

    #[derive(Event, Serialize, Deserialize, JsonSchema)]
    #[event("order.changed.v1", key = |event| event.id.as_str())]
    pub(super) struct Changed<T> {
        pub(super) id: String,
        pub(super) what: T,
    }
}
use elsewhere::Changed as OrderChanged;

#[catalog(schema, name = "orders")]
enum OrderEvents {
    OrderPlaced(OrderPlaced),
    #[wire("Order Changed")]
    OrderChanged(OrderChanged<Customer>),
}

#[test]
fn the_schema_of_the_whole_has_each_event_with_its_names() {
    let schema = OrderEvents::json_schema();
    assert_eq!(schema["title"], "orders");
    let expected = json!([
        {
            "title": "OrderPlaced",
            "type": "object",
            "properties": { "type": { "const": "order.placed.v1" }, "payload": { "$ref": "#/$defs/OrderPlaced" } },
            "required": ["payload", "type"],
            "x-wire-name": "order.placed.v1",
            "x-ordering-key": "customer.id",
        },
        {
            "title": "OrderChanged",
            "type": "object",
            "properties": { "type": { "const": "order.changed.v1" }, "payload": { "$ref": "#/$defs/Changed" } },
            "required": ["payload", "type"],
            "x-wire-name": "Order Changed",
            "x-ordering-key": "|event|event.id.as_str()",
        },
    ]);
    assert_eq!(schema["oneOf"], expected);
    let placed = &schema["$defs"]["OrderPlaced"];
    assert_eq!(placed["description"], "A customer placed an order.");
    assert_eq!(placed["required"], json!(["customer", "lines", "payment"]));
    every_reference_leads_somewhere(&schema);
}

#[test]
fn a_snapshot_says_both_sides_once_and_comes_back_from_its_text() {
    let snapshot = CatalogSnapshot::of::<OrderEvents>();
    let text = snapshot.to_text();
    let file: Value = serde_json::from_str(&text).unwrap();
    let placed = &file["events"]["order.placed.v1"];
    assert_eq!((&placed["name"], &placed["key"]), (&json!("OrderPlaced"), &json!("customer.id")));
    let payload = &placed["payload"];
    assert_eq!(payload["$defs"].as_object().unwrap().keys().collect::<Vec<_>>(), ["Customer", "Line", "Payment"]);
    assert_eq!(payload["required"], json!(["customer", "lines", "payment"]));
    assert_eq!(payload["x-always-written"], json!(["coupons", "customer", "lines", "note", "payment"]));
    assert_eq!(file["events"]["order.changed.v1"]["wire"], "Order Changed");
    assert!(text.ends_with("}\n"));

    let again = CatalogSnapshot::parse(&text).unwrap();
    assert_eq!(again, snapshot);
    assert_eq!(again.to_text(), text);
    assert!(again.compare(&snapshot).changes.is_empty());
}

#[test]
fn texts_that_are_no_snapshots_are_refused() {
    for (text, why) in [
        ("", "it is not JSON"),
        ("{\n<<<<<<< HEAD\n}\n", "it has the marks of a merge with conflicts"),
        ("{}", "the version of its form, is not 1"),
        (r#"{"relaybusCatalog":2}"#, "the version of its form, is not 1"),
        (r#"{"relaybusCatalog":1}"#, "it has no `events`"),
        (r#"{"relaybusCatalog":1,"events":{}}"#, "`catalog` is no text"),
        (r#"{"relaybusCatalog":1,"catalog":"a","events":{"x":{"name":"X"}}}"#, "the event `x` has no `payload`"),
        (
            r#"{"relaybusCatalog":1,"catalog":"a","events":{"x":{"name":"X","wire":5,"payload":{}}}}"#,
            "`wire` is no text",
        ),
    ] {
        let error = CatalogSnapshot::parse(text).unwrap_err();
        assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
        assert!(error.to_string().contains(why), "{error}");
    }
}

mod next {
    use super::{Customer, Deserialize, Event, JsonSchema, Line, OrderChanged, Serialize, catalog};

    #[derive(Event, Serialize, Deserialize, JsonSchema)]
    #[event("order.placed.v1", key = customer.id)]
    pub(super) struct OrderPlaced {
        customer: Customer,
        lines: Vec<Line>,
        #[serde(default)]
        coupons: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        channel: Option<String>,
        payment: Payment,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    pub(super) enum Payment {
        Invoice,
        Card { number: u64 },
        Voucher,
    }

    #[catalog(schema, name = "orders")]
    pub(super) enum OrderEvents {
        OrderPlaced(OrderPlaced),
        #[wire("Order Changed")]
        OrderChanged(OrderChanged<Customer>),
    }
}

#[test]
fn changes_of_types_are_found_through_their_schemas() {
    let comparison = CatalogSnapshot::of::<OrderEvents>().compare(&CatalogSnapshot::of::<next::OrderEvents>());
    let said: Vec<String> =
        comparison.changes.iter().map(|change| format!("{}: {}", change.severity.name(), change.what)).collect();
    assert_eq!(
        said,
        [
            "breaking: the field `note` was removed",
            "breaking: `payment<card>.number` changed from a text to an integer",
            "caution: the variant `voucher` of `payment` was added",
            "compatible: the optional field `channel` was added",
        ]
    );
}

/// Every `$ref` in a document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn every_reference_leads_somewhere(document: &Value) {
    let mut found = Vec::new();
    references(document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere in {document:#}");
    }
}

/// The fields of an object of the specification: those it must have, then those it may have.
fn has_only(object: &Value, must: &[&str], may: &[&str]) {
    let object = object.as_object().unwrap();
    for field in must {
        assert!(object.contains_key(*field), "`{field}` is missing in {object:?}");
    }
    for field in object.keys() {
        assert!(must.contains(&field.as_str()) || may.contains(&field.as_str()), "`{field}` is unknown");
    }
}

/// The rules of AsyncAPI 3.0.0 for the objects that our documents have.
fn is_asyncapi(document: &Value) {
    has_only(document, &["asyncapi", "info"], &["defaultContentType", "channels", "operations", "components"]);
    assert_eq!(document["asyncapi"], "3.0.0");
    has_only(&document["info"], &["title", "version"], &["description"]);
    let usable = |key: &String| key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    for channel in document["channels"].as_object().unwrap().values() {
        has_only(channel, &["address", "messages"], &[]);
        for message in channel["messages"].as_object().unwrap().values() {
            assert!(message["$ref"].as_str().unwrap().starts_with("#/components/messages/"));
        }
    }
    for operation in document["operations"].as_object().unwrap().values() {
        has_only(operation, &["action", "channel", "messages"], &[]);
        assert!(["send", "receive"].contains(&operation["action"].as_str().unwrap()));
        let channel = operation["channel"]["$ref"].as_str().unwrap();
        assert!(channel.starts_with("#/channels/"));
        for message in operation["messages"].as_array().unwrap() {
            assert!(message["$ref"].as_str().unwrap().starts_with(&format!("{channel}/messages/")));
        }
    }
    has_only(&document["components"], &["messages", "schemas"], &[]);
    for part in ["messages", "schemas"] {
        assert!(document["components"][part].as_object().unwrap().keys().all(usable));
    }
    for message in document["components"]["messages"].as_object().unwrap().values() {
        let may = ["headers", "correlationId", "bindings", "title", "contentType"];
        has_only(message, &["name", "payload"], &may);
        if let Some(headers) = message.get("headers") {
            assert_eq!(headers["type"], "object");
            assert!(message["correlationId"]["location"].as_str().unwrap().starts_with("$message.header#/"));
        }
    }
    every_reference_leads_somewhere(document);
}

#[test]
fn a_document_has_channels_operations_and_messages() {
    let document = AsyncApi::new("Orders", "1.0.0")
        .description("Takes orders")
        .sends(produce::<OrderEvents>().only::<(OrderPlaced,)>(), "shop/orders")
        .receives(consume::<OrderEvents>().only::<(OrderChanged<Customer>,)>(), "shop/orders")
        .to_json();
    is_asyncapi(&document);
    assert_eq!(document["channels"]["shop_orders"]["address"], "shop/orders");
    let operations = json!({
        "send_shop_orders": {
            "action": "send",
            "channel": { "$ref": "#/channels/shop_orders" },
            "messages": [{ "$ref": "#/channels/shop_orders/messages/OrderPlaced" }],
        },
        "receive_shop_orders": {
            "action": "receive",
            "channel": { "$ref": "#/channels/shop_orders" },
            "messages": [{ "$ref": "#/channels/shop_orders/messages/OrderChanged" }],
        },
    });
    assert_eq!(document["operations"], operations);
    let changed = &document["components"]["messages"]["OrderChanged"];
    assert_eq!(changed["name"], "Order Changed");
    assert_eq!(changed["headers"]["properties"]["ce_type"], json!({ "type": "string", "const": "Order Changed" }));
    assert_eq!(changed["correlationId"], json!({ "location": "$message.header#/ce_correlationid" }));
    assert!(changed["bindings"]["kafka"]["key"].is_object());
    assert_eq!(document["components"]["schemas"]["Line"]["additionalProperties"], false);
}

#[test]
fn a_document_of_a_route_has_its_destination_and_wire_names() {
    let route = Route::catalog(produce::<OrderEvents>(), "rabbitmq").wire_type::<OrderPlaced>("Order Placed");
    let document = AsyncApi::new("Orders", "1.0.0").headers(MessageHeaders::Amqp).route(&route).to_json();
    is_asyncapi(&document);
    assert_eq!(document["channels"]["order.placed.v1"]["address"], "order.placed.v1");
    let message = &document["components"]["messages"]["OrderPlaced"];
    assert_eq!(message["name"], "Order Placed");
    assert_eq!(message["headers"]["properties"]["cloudEvents:type"]["const"], "Order Placed");
    assert!(message.get("bindings").is_none());
}

#[test]
fn a_document_of_a_catalog_alone_sends_each_event_to_a_channel_of_its_own() {
    let document = AsyncApi::of_catalog::<OrderEvents>("2.0.0").to_json();
    is_asyncapi(&document);
    assert_eq!(document["info"], json!({ "title": "orders", "version": "2.0.0" }));
    assert_eq!(document["channels"].as_object().unwrap().len(), 2);
    let plain =
        AsyncApi::new("a", "1").headers(MessageHeaders::Undescribed).sends(produce::<OrderEvents>(), "x").to_json();
    is_asyncapi(&plain);
    assert!(plain["components"]["messages"]["OrderPlaced"].get("headers").is_none());
}

#[test]
fn events_of_one_name_and_destinations_of_one_key_stay_apart() {
    #[catalog(schema, name = "others")]
    enum Others {
        OrderPlaced(OrderChanged<Customer>),
    }
    let document = AsyncApi::new("Both", "1")
        .sends(produce::<OrderEvents>().only::<(OrderPlaced,)>(), "a/b")
        .sends(produce::<Others>(), "a b")
        .sends(produce::<Others>(), "a b")
        .to_json();
    is_asyncapi(&document);
    assert_eq!(document["channels"]["a_b"]["address"], "a/b");
    assert_eq!(document["channels"]["a_b_2"]["address"], "a b");
    assert_eq!(document["components"]["messages"]["others.OrderPlaced"]["name"], "order.changed.v1");
    assert_eq!(document["operations"]["send_a_b_2"]["messages"].as_array().unwrap().len(), 1);
}
