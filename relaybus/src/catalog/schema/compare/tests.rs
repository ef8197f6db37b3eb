//! Changes of a payload and of an event, and what is said about each.
// tidy: long because it is a table

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::canonical::{reads, writes};
use super::super::snapshot::{CatalogSnapshot, EventSnapshot};
use super::{Audience, Comparison, Severity};

fn event(payload: &Value) -> EventSnapshot {
    EventSnapshot {
        name: "Placed".to_owned(),
        wire: "placed.v1".to_owned(),
        key: Some("id".to_owned()),
        reads: reads(payload),
        writes: writes(payload),
    }
}

fn catalog(events: impl IntoIterator<Item = (&'static str, EventSnapshot)>) -> CatalogSnapshot {
    let events = events.into_iter().map(|(event_type, event)| (event_type.to_owned(), event));
    CatalogSnapshot { catalog: "Orders".to_owned(), events: events.collect::<BTreeMap<_, _>>() }
}

fn compared(old: &Value, new: &Value) -> Comparison {
    catalog([("placed.v1", event(old))]).compare(&catalog([("placed.v1", event(new))]))
}

/// The changes without their event, and for whom: `D` for deployed consumers, `S` for stored events, `P` for publishers that are
/// not upgraded, `L` for later ones.
fn said(old: &Value, new: &Value) -> Vec<String> {
    let letter = |(audience, _): &(Audience, String)| match audience {
        Audience::DeployedConsumers => 'D',
        Audience::StoredEvents => 'S',
        Audience::DeployedPublishers => 'P',
        Audience::LaterPublishers => 'L',
    };
    let line = |change: super::Change| {
        let who: String = change.affects.iter().map(letter).collect();
        format!("{} {who}: {}", change.severity.name(), change.what).replace(" : ", ": ")
    };
    compared(old, new).changes.into_iter().map(line).collect()
}

/// A payload with one field `a`, required.
fn a(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "a": schema }, "required": ["a"] })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn int(format: &str) -> Value {
    json!({ "type": "integer", "format": format })
}

/// Each line: the old field, the new one, and what is said.
fn check(cases: &[(Value, Value, &[&str])]) {
    for (old, new, expected) in cases {
        assert_eq!(said(old, new), *expected, "\nold: {old}\nnew: {new}");
        for same in [old, new] {
            assert_eq!(said(same, same), [""; 0], "{same}");
        }
    }
}

fn check_field(cases: &[(Value, Value, &[&str])]) {
    let whole: Vec<_> = cases.iter().map(|(old, new, said)| (a(old.clone()), a(new.clone()), *said)).collect();
    check(&whole);
}

#[test]
fn fields_that_come_and_go() {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let one = || object(json!({ "a": text() }), json!(["a"]));
    let with_optional = || object(json!({ "a": text(), "b": text() }), json!(["a"]));
    let with_required = || object(json!({ "a": text(), "b": text() }), json!(["a", "b"]));
    let mut with_default = with_optional();
    with_default["x-always-written"] = json!(["a", "b"]);
    check(&[
        (one(), one(), &[]),
        (one(), with_optional(), &["compatible: the optional field `b` was added"]),
        (one(), with_default.clone(), &["compatible: the optional field `b` was added"]),
        (one(), with_required(), &["breaking SP: the required field `b` was added"]),
        (with_required(), one(), &["breaking D: the field `b` was removed"]),
        (with_optional(), one(), &["breaking D: the field `b` was removed"]),
        (with_optional(), with_required(), &["breaking SP: the field `b` became required"]),
        (with_required(), with_optional(), &["breaking D: the field `b` may be left out now"]),
        (with_required(), with_default.clone(), &[]),
        (with_default.clone(), with_required(), &["breaking SP: the field `b` became required"]),
        (with_default.clone(), with_optional(), &[]),
    ]);
}

#[test]
fn payloads_that_refuse_what_they_do_not_know() {
    let open = |fields: &[&str]| {
        let properties: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), text())).collect();
        json!({ "type": "object", "properties": properties, "required": fields })
    };
    let closed = |fields: &[&str]| {
        let mut schema = open(fields);
        schema["additionalProperties"] = json!(false);
        schema
    };
    let optional = |mut schema: Value| {
        schema["required"] = json!(["a"]);
        schema
    };
    check(&[
        (closed(&["a"]), closed(&["a"]), &[]),
        (open(&["a"]), closed(&["a"]), &["caution L: the payload refuses fields that it does not know now"]),
        (closed(&["a"]), open(&["a"]), &[]),
        (
            closed(&["a"]),
            optional(closed(&["a", "b"])),
            &[
                "breaking D: the field `b` was added, and deployed consumers refuse fields that they do not know",
                "compatible: the optional field `b` was added",
            ],
        ),
        (
            optional(closed(&["a", "b"])),
            closed(&["a"]),
            &[
                "breaking D: the field `b` was removed",
                "breaking SP: the field `b` was removed, and consumers of this version refuse fields that they do not know",
            ],
        ),
    ]);
}

#[test]
fn types() {
    let nullable = json!({ "type": ["string", "null"] });
    let nullable_reference = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    check_field(&[
        (text(), int("int64"), &["breaking DSP: `a` changed from a text to an integer"]),
        (text(), json!(true), &["breaking D: `a` changed from a text to any value"]),
        (json!({}), text(), &["breaking SP: `a` changed from any value to a text"]),
        (
            int("int64"),
            json!({ "type": "number", "format": "double" }),
            &["breaking D: `a` changed from an integer to a number"],
        ),
        (
            json!({ "type": "number", "format": "double" }),
            int("int64"),
            &["breaking SP: `a` changed from a number to an integer"],
        ),
        (text(), nullable.clone(), &["breaking D: `a` may be null now"]),
        (nullable.clone(), text(), &["breaking SP: `a` may no longer be null"]),
        (nullable.clone(), nullable_reference, &[]),
        (nullable, int("int8"), &["breaking DSP: `a` changed from a text to an integer"]),
        (text(), json!({ "type": "array", "items": text() }), &["breaking DSP: `a` changed from a text to a list"]),
        (text(), json!({ "enum": ["x", "y"] }), &["breaking SP: `a` changed from a text to one of `x`, `y`"]),
        (json!({ "enum": ["x", "y"] }), text(), &["breaking D: `a` changed from one of `x`, `y` to a text"]),
        (json!({ "const": 1 }), int("int8"), &["breaking D: `a` changed from always `1` to an integer"]),
    ]);
}

#[test]
fn ranges_and_rules() {
    let with = |key: &str, value: Value| {
        let mut schema = text();
        schema[key] = value;
        schema
    };
    let number = |format: &str| json!({ "type": "number", "format": format });
    check_field(&[
        (int("uint8"), json!({ "type": "integer", "format": "uint8", "minimum": 0, "maximum": 255 }), &[]),
        (int("uint8"), int("uint16"), &["breaking D: the range of `a` changed from 0 to 255 to 0 to 65535"]),
        (int("uint16"), int("uint8"), &["breaking SP: the range of `a` changed from 0 to 65535 to 0 to 255"]),
        (int("int8"), int("uint8"), &["breaking DSP: the range of `a` changed from -128 to 127 to 0 to 255"]),
        (
            json!({ "type": "integer" }),
            json!({ "type": "integer", "minimum": 1 }),
            &["breaking SP: the range of `a` changed from any to at least 1"],
        ),
        (number("float"), number("double"), &["caution D: the precision of `a` changed from float to double"]),
        (number("double"), number("float"), &["caution S: the precision of `a` changed from double to float"]),
        (text(), with("format", json!("uuid")), &["breaking SP: the format of `a` changed from none to `uuid`"]),
        (with("format", json!("uuid")), text(), &["breaking D: the format of `a` changed from `uuid` to none"]),
        (
            with("format", json!("date")),
            with("format", json!("date-time")),
            &["breaking DSP: the format of `a` changed from `date` to `date-time`"],
        ),
        (
            with("maxLength", json!(9)),
            with("maxLength", json!(5)),
            &["breaking SP: the largest length of `a` changed from `9` to `5`"],
        ),
        (
            with("minLength", json!(2)),
            with("minLength", json!(1)),
            &["breaking D: the least length of `a` changed from `2` to `1`"],
        ),
        (
            with("pattern", json!("^a")),
            with("pattern", json!("^b")),
            &["breaking DSP: the pattern of `a` changed from `^a` to `^b`"],
        ),
        (with("description", json!("old")), with("title", json!("new")), &[]),
    ]);
}

#[test]
fn lists_maps_and_tuples() {
    let list = |items: Value| json!({ "type": "array", "items": items });
    let map = |values: Value| json!({ "type": "object", "additionalProperties": values });
    let tuple = |items: Value, length: u8| json!({ "type": "array", "prefixItems": items, "minItems": length, "maxItems": length });
    check_field(&[
        (json!({ "type": "array" }), list(text()), &["breaking SP: `a[]` changed from any value to a text"]),
        (list(text()), list(int("int8")), &["breaking DSP: `a[]` changed from a text to an integer"]),
        (map(text()), map(int("int8")), &["breaking DSP: `a{}` changed from a text to an integer"]),
        (map(json!(true)), map(text()), &["breaking SP: `a{}` changed from any value to a text"]),
        (
            tuple(json!([text(), text()]), 2),
            tuple(json!([text(), int("int8")]), 2),
            &["breaking DSP: `a[1]` changed from a text to an integer"],
        ),
        (
            tuple(json!([text()]), 1),
            tuple(json!([text(), text()]), 2),
            &[
                "breaking D: the largest length of `a` changed from `1` to `2`",
                "breaking SP: the least length of `a` changed from `1` to `2`",
            ],
        ),
        (
            list(text()),
            json!({ "type": "array", "items": text(), "uniqueItems": true }),
            &["caution S: the uniqueness of `a` changed from none to `true`"],
        ),
    ]);
}

#[test]
fn enums_of_names() {
    let names = |names: &[&str]| json!({ "type": "string", "enum": names });
    let with_documentation =
        json!({ "oneOf": [names(&["x"]), { "const": "y", "description": "why", "type": "string" }] });
    check_field(&[
        (names(&["x", "y"]), names(&["y", "x"]), &[]),
        (names(&["x", "y"]), with_documentation, &[]),
        (names(&["x"]), names(&["x", "y"]), &["caution D: the value `y` of `a` was added"]),
        (names(&["x", "y"]), names(&["x"]), &["breaking SP: the value `y` of `a` was removed"]),
        (
            names(&["x"]),
            names(&["y"]),
            &["breaking SP: the value `x` of `a` was removed", "caution D: the value `y` of `a` was added"],
        ),
        (json!({ "enum": ["x", null] }), names(&["x"]), &["breaking SP: `a` may no longer be null"]),
    ]);
}

#[test]
fn enums_with_data_however_serde_writes_them() {
    let external = |name: &str, data: Value| json!({ "type": "object", "properties": { name: data }, "required": [name], "additionalProperties": false });
    let internal = |name: &str, field: &str, data: Value| json!({ "type": "object", "properties": { "kind": { "type": "string", "const": name }, field: data }, "required": ["kind", field] });
    let one_of = |variants: &[Value]| json!({ "oneOf": variants });
    let cash = || json!({ "type": "string", "enum": ["Cash"] });
    check_field(&[
        (
            one_of(&[cash(), external("Card", text())]),
            one_of(&[cash(), external("Card", int("int8"))]),
            &["breaking DSP: `a.Card` changed from a text to an integer"],
        ),
        (cash(), one_of(&[cash(), external("Card", text())]), &["caution D: the variant `Card` of `a` was added"]),
        (
            one_of(&[cash(), external("Card", text())]),
            one_of(&[external("Card", text())]),
            &["breaking SP: the value `Cash` of `a` was removed"],
        ),
        (
            one_of(&[external("Card", text())]),
            one_of(&[external("Card", text()), external("Bank", text())]),
            &["caution D: the variant `Bank` of `a` was added"],
        ),
        (
            one_of(&[internal("card", "number", text()), internal("bank", "iban", text())]),
            one_of(&[internal("card", "number", int("int8"))]),
            &[
                "breaking SP: the variant `bank` of `a` was removed",
                "breaking DSP: `a<card>.number` changed from a text to an integer",
            ],
        ),
        (cash(), a(text()), &["breaking DSP: `a` changed from always `Cash` to an object"]),
    ]);
}

#[test]
fn untagged_enums_are_paired_by_what_reads_them() {
    let object =
        |field: &str, schema: Value| json!({ "type": "object", "properties": { field: schema }, "required": [field] });
    let any_of = |variants: &[Value]| json!({ "anyOf": variants });
    check_field(&[
        (any_of(&[object("x", text()), object("y", text())]), any_of(&[object("y", text()), object("x", text())]), &[]),
        (
            any_of(&[object("x", text()), object("y", text())]),
            any_of(&[object("x", text()), object("y", text()), object("z", text())]),
            &["caution D: the alternative with `z` of `a` was added"],
        ),
        (
            any_of(&[object("x", text()), int("int8")]),
            object("x", text()),
            &["breaking SP: `a` changed from an object or an integer to an object"],
        ),
    ]);
}

#[test]
fn untagged_enums_of_numbers_texts_and_lists_are_read_by_any_that_does() {
    let any_of = |kinds: &[Value]| json!({ "anyOf": kinds });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let uuid = || json!({ "type": "string", "format": "uuid" });
    check_field(&[
        (any_of(&[int("uint8"), int("int64")]), any_of(&[int("int64"), int("uint8")]), &[]),
        (any_of(&[uuid(), text()]), any_of(&[text(), uuid()]), &[]),
        (any_of(&[list(text()), list(int("int8"))]), any_of(&[list(int("int8")), list(text())]), &[]),
        (
            any_of(&[int("uint8"), int("int64")]),
            any_of(&[int("uint8"), int("int32")]),
            &[
                "breaking SP: the range of `a` changed from -9223372036854775808 to 9223372036854775807 to -2147483648 to 2147483647",
            ],
        ),
    ]);
}

#[test]
fn references_are_followed_and_may_go_in_circles() {
    let node = |value: Value| {
        json!({
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": { "value": value, "next": { "anyOf": [{ "$ref": "#/$defs/Node" }, { "type": "null" }] } },
                    "required": ["value"]
                }
            }
        })
    };
    let renamed = |value: Value| {
        let text = node(value).to_string().replace("Node", "Link");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let in_words = |schema: Value| {
        let mut whole = a(json!({ "$ref": "#/$defs/A%20Name~1%E2%82%AC" }));
        whole["$defs"] = json!({ "A Name/€": schema });
        whole
    };
    let merged = json!({
        "allOf": [
            { "type": "object", "properties": { "a": text() }, "required": ["a"] },
            { "properties": { "b": { "$ref": "#/$defs/B" } }, "required": ["b"] }
        ],
        "$defs": { "B": text() }
    });
    let flat = json!({ "type": "object", "properties": { "a": text(), "b": text() }, "required": ["a", "b"] });
    let tagged_flat = json!({
        "type": "object", "properties": { "a": text() }, "required": ["a"],
        "oneOf": [
            { "type": "object", "properties": { "t": { "const": "X" }, "b": text() }, "required": ["t", "b"] },
            { "type": "object", "properties": { "t": { "const": "Y" } }, "required": ["t"] }
        ]
    });
    let mut tagged_changed = tagged_flat.clone();
    tagged_changed["oneOf"][0]["properties"]["b"] = int("int8");
    check(&[
        (node(text()), renamed(text()), &[]),
        (node(text()), renamed(int("int8")), &["breaking DSP: `value` changed from a text to an integer"]),
        (merged, flat, &[]),
        (in_words(text()), in_words(int("int8")), &["breaking DSP: `a` changed from a text to an integer"]),
        (in_words(text()), a(text()), &[]),
        (tagged_flat, tagged_changed, &["breaking DSP: `<X>.b` changed from a text to an integer"]),
    ]);
}

#[test]
fn what_it_cannot_follow_counts_as_changed_when_it_is_not_the_same() {
    let rule = |limit: u8| {
        json!({ "if": { "$ref": "#/$defs/Title" }, "$defs": { "Title": {
        "type": "object", "description": "why", "properties": { "title": { "maxLength": limit } }
    } } })
    };
    let mut other_note = rule(1);
    other_note["$defs"]["Title"]["description"] = json!("why not");
    let circle = json!({ "if": { "$ref": "#" } });
    let beside = |schema: Value| {
        let mut whole = a(json!({ "$ref": "#/$defs/A" }));
        whole["$defs"] = json!({ "A": schema });
        whole["allOf"] = json!([rule(1)]);
        whole
    };
    let whole = |rule: Value| {
        [a(text()), rule].into_iter().fold(json!({}), |mut all, part| {
            all.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            all
        })
    };
    check(&[
        (whole(rule(1)), whole(other_note), &[]),
        (
            whole(rule(1)),
            whole(rule(2)),
            &["breaking DSP: the payload has other rules, which this check does not know"],
        ),
        (whole(circle.clone()), whole(circle), &[]),
        (
            beside(text()),
            beside(int("int8")),
            &["breaking DSP: the payload has other rules, which this check does not know"],
        ),
    ]);
}

#[test]
fn fields_by_pattern() {
    let by = |pattern: &str, schema: Value| json!({ "type": "object", "patternProperties": { pattern: schema }, "additionalProperties": false });
    check_field(&[
        (by("^a", text()), by("^a", int("int8")), &["breaking DSP: `a{}` changed from a text to an integer"]),
        (by("^a", text()), by("^b", text()), &["breaking DSP: the names of fields in `a` changed from `^a` to `^b`"]),
        (
            json!({ "type": "object", "properties": { "x": text() }, "additionalProperties": false }),
            by("^a", text()),
            &[
                "breaking D: the names of fields in `a` changed from a list of names to `^a`",
                "breaking D: the field `a.x` was removed",
                "breaking SP: the field `a.x` was removed, and consumers of this version refuse fields that they do not know",
            ],
        ),
    ]);
}

#[test]
fn values_of_one_kind_come_and_go_one_by_one() {
    let values = |values: Value| json!({ "enum": values });
    check_field(&[
        (values(json!([1, 2])), values(json!([1, 2, 3])), &["caution D: the value `3` of `a` was added"]),
        (values(json!([1, 2])), values(json!([1])), &["breaking SP: the value `2` of `a` was removed"]),
        (
            values(json!(["x"])),
            json!({ "type": "string", "format": "uuid" }),
            &["breaking D: `a` changed from always `x` to a text", "breaking SP: the value `x` of `a` was removed"],
        ),
        (values(json!([1])), values(json!(["x"])), &["breaking DSP: `a` changed from always `1` to always `x`"]),
    ]);
}

#[test]
fn what_never_fitted_has_not_changed() {
    let never_fitted = || EventSnapshot { writes: a(int("int8")), ..event(&a(text())) };
    let compared = |old: EventSnapshot, new: EventSnapshot| {
        catalog([("placed.v1", old)]).compare(&catalog([("placed.v1", new)])).to_string()
    };
    assert_eq!(compared(never_fitted(), never_fitted()), "");
    assert!(compared(event(&a(text())), never_fitted()).contains("`a` changed from a text to an integer"));
}

#[test]
fn events_and_their_names() {
    let payload = a(text());
    let (old, other) = (event(&payload), || catalog([("placed.v1", event(&payload))]));
    let changed = |change: &dyn Fn(&mut EventSnapshot)| {
        let mut event = old.clone();
        change(&mut event);
        let whole = other().compare(&catalog([("placed.v1", event)]));
        (whole.worst(), whole.to_string())
    };
    assert_eq!(changed(&|_| {}), (None, String::new()));
    let (_, wire) = changed(&|event| event.wire = "Placed!".to_owned());
    assert_eq!(
        wire,
        "breaking: Placed (placed.v1): the wire name changed from `placed.v1` to `Placed!`
    consumers already deployed that read new events: they do not know the new name
    consumers of this version that read events stored before the change: messages still at the broker have a name that they do not know
    publishers that are not upgraded: what they send has a name that consumers of this version do not know"
    );
    let (_, key) = changed(&|event| event.key = None);
    assert_eq!(
        key,
        "breaking: Placed (placed.v1): the ordering key changed from `id` to none
    consumers already deployed that read new events: they get events in another order than they rely on
    consumers of this version that read events stored before the change: events stored before and after the change are not kept in order with each other"
    );
    let (severity, name) = changed(&|event| event.name = "Ordered".to_owned());
    assert_eq!(severity, Some(Severity::Breaking));
    assert!(
        name.starts_with("breaking: Ordered (placed.v1): the variant `Placed` is called `Ordered` now\n"),
        "{name}"
    );

    let two = catalog([
        ("placed.v1", event(&payload)),
        ("shipped.v1", EventSnapshot { name: "Shipped".to_owned(), ..event(&payload) }),
    ]);
    assert_eq!(other().compare(&two).to_string(), "compatible: Shipped (shipped.v1): the event was added");
    assert_eq!(
        two.compare(&other()).to_string(),
        "breaking: Shipped (shipped.v1): the event was removed
    consumers already deployed that read new events: they no longer receive the event
    consumers of this version that read events stored before the change: nothing handles those events
    publishers that are not upgraded: nothing handles what they send"
    );
    let retyped = other().compare(&catalog([("placed.v2", event(&payload))])).to_string();
    assert!(
        retyped.starts_with("breaking: Placed (placed.v1): the event type changed from `placed.v1` to `placed.v2`\n"),
        "{retyped}"
    );
    assert!(!retyped.contains("added"), "{retyped}");
    let mut renamed = other();
    renamed.catalog = "Purchases".to_owned();
    assert!(
        other().compare(&renamed).to_string().starts_with("breaking: the catalog `Orders` is called `Purchases` now\n")
    );
}

#[test]
fn the_worst_comes_first_and_says_what_breaks() {
    let old =
        json!({ "type": "object", "properties": { "a": text(), "s": { "enum": ["x"] } }, "required": ["a", "s"] });
    let new = json!({ "type": "object", "properties": { "a": text(), "b": text(), "c": text(), "s": { "enum": ["x", "y"] } }, "required": ["a", "b", "s"] });
    let comparison = compared(&old, &new);
    assert!(comparison.is_breaking());
    assert_eq!(
        comparison.to_string(),
        "breaking: Placed (placed.v1): the required field `b` was added
    consumers of this version that read events stored before the change: they cannot decode those events
    publishers that are not upgraded: consumers of this version cannot decode what they send
caution: Placed (placed.v1): the value `y` of `s` was added
    consumers already deployed that read new events: they cannot decode events that have it: deploy them first, before anybody publishes it
compatible: Placed (placed.v1): the optional field `c` was added"
    );
}

#[test]
fn types_that_are_used_everywhere_are_compared_once() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/L{}", level + 1) });
        let both = json!({ "type": "object", "properties": { "a": next, "b": next }, "required": ["a", "b"] });
        definitions.insert(format!("L{level}"), both);
    }
    definitions.insert("L40".to_owned(), text());
    let deep = json!({ "$ref": "#/$defs/L0", "$defs": definitions });
    assert_eq!(said(&deep, &deep), [""; 0]);
    let mut other = deep.clone();
    other["$defs"]["L40"] = int("int8");
    assert!(said(&deep, &other).len() >= 200, "a difference ends");
}
