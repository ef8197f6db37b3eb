//! What values a JSON schema stands for, as a list of alternatives: references followed, unions flattened, and what must hold
//! together merged. A comparison then needs to know nothing of the many ways to write the same.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Rules about a value beside its kind, by keyword: `format`, `maxLength`, `pattern`.
pub(super) type Rules = BTreeMap<String, Value>;

/// A kind of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Alternative {
    Anything,
    Null,
    Boolean,
    /// Listed ones: `enum` and `const`.
    Values(Vec<Value>),
    Number(Number),
    Text(Rules),
    List(List),
    Object(Object),
    /// What this check cannot follow: equal only to itself.
    Opaque(Value),
}

/// Numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    pub(super) whole: bool,
    /// The least and the largest.
    pub(super) range: (f64, f64),
    pub(super) rules: Rules,
}

/// Lists: the schemas of the first items, then that of all others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct List {
    pub(super) first: Vec<Value>,
    pub(super) items: Option<Value>,
    pub(super) rules: Rules,
}

/// Objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object {
    pub(super) properties: BTreeMap<String, Value>,
    /// The schemas of the properties whose names fit a pattern: how a map by numbers is described.
    pub(super) patterns: BTreeMap<String, Value>,
    pub(super) required: BTreeSet<String>,
    /// The schema of further properties, where something is said of them.
    pub(super) additional: Option<Value>,
    pub(super) rules: Rules,
}

/// References that lead to references only: more than anybody writes.
const MAX_REFERENCES: usize = 64;

/// Keywords that say nothing about values.
const NOTES: [&str; 15] = [
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "example",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
    "contentMediaType",
    "discriminator",
];

/// Keywords whose meaning depends on more than the kind of the value.
const OPAQUE: [&str; 7] = ["if", "then", "else", "dependentSchemas", "dependentRequired", "$dynamicRef", "contains"];

/// Keywords whose members are names with schemas.
const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// Keywords whose content is no schema.
const PLAIN: [&str; 4] = ["const", "enum", "required", "dependentRequired"];

/// The alternatives of a schema inside `root`; none when no value fits.
pub(super) fn alternatives(schema: &Value, root: &Value) -> Vec<Alternative> {
    within(schema, root, 0)
}

fn within(schema: &Value, root: &Value, depth: usize) -> Vec<Alternative> {
    let map = match schema {
        Value::Object(map) => map,
        Value::Bool(false) => return Vec::new(),
        _ => return vec![Alternative::Anything],
    };
    if depth > MAX_REFERENCES || map.keys().any(|key| OPAQUE.contains(&key.as_str())) || has_unknown_not(map) {
        return vec![Alternative::Opaque(spelled_out(schema, root, &mut BTreeSet::new()))];
    }
    let mut parts = vec![own(map)];
    if let Some(Value::String(reference)) = map.get("$ref") {
        let target = resolve(reference, root).map(|target| within(target, root, depth + 1));
        parts.push(target.unwrap_or_else(|| vec![Alternative::Opaque(json!({ "$ref": reference }))]));
    }
    parts.extend(items_of(map, "allOf").iter().map(|part| within(part, root, depth + 1)));
    for key in ["anyOf", "oneOf"].into_iter().filter(|key| map.contains_key(*key)) {
        parts.push(items_of(map, key).iter().flat_map(|part| within(part, root, depth + 1)).collect());
    }
    parts.retain(|part| *part != [Alternative::Anything]);
    // What must hold together with a rule that cannot be followed is compared with it.
    if parts.len() > 1 && parts.iter().flatten().any(|part| matches!(part, Alternative::Opaque(_))) {
        return vec![Alternative::Opaque(spelled_out(schema, root, &mut BTreeSet::new()))];
    }
    parts.into_iter().reduce(both).unwrap_or_else(|| vec![Alternative::Anything])
}

/// Whether it excludes something that is no rule about numbers and texts, as `not` is where zero is not allowed.
fn has_unknown_not(map: &Map<String, Value>) -> bool {
    let is_followed = matches!(map.get("type").and_then(Value::as_str), Some("integer" | "number" | "string"));
    map.get("not").is_some_and(|excluded| !is_followed || excluded.to_string().contains("\"$ref\""))
}

/// What a reference inside `root` leads to.
fn resolve<'r>(reference: &str, root: &'r Value) -> Option<&'r Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(pointer).or_else(|| root.pointer(&unescaped(pointer)?))
}

/// A fragment of a URI without its percent signs: names of types may have any letters.
fn unescaped(pointer: &str) -> Option<String> {
    let mut parts = pointer.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

fn items_of<'m>(map: &'m Map<String, Value>, key: &str) -> &'m [Value] {
    map.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What a schema says without its parts.
fn own(map: &Map<String, Value>) -> Vec<Alternative> {
    let listed = match (map.get("const"), map.get("enum")) {
        (Some(value), _) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    };
    if let Some(values) = listed {
        let (nulls, values): (Vec<Value>, Vec<Value>) = values.into_iter().partition(Value::is_null);
        let null = (!nulls.is_empty()).then_some(Alternative::Null);
        return null.into_iter().chain((!values.is_empty()).then_some(Alternative::Values(values))).collect();
    }
    let kinds: Vec<&str> = match map.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if has(
            map,
            &["properties", "required", "patternProperties", "additionalProperties", "unevaluatedProperties"],
        ) =>
        {
            vec!["object"]
        }
        _ if has(map, &["items", "prefixItems", "maxItems", "minItems"]) => vec!["array"],
        _ => return vec![Alternative::Anything],
    };
    kinds.into_iter().map(|kind| of_kind(kind, map)).collect()
}

fn has(map: &Map<String, Value>, keys: &[&str]) -> bool {
    keys.iter().any(|key| map.contains_key(*key))
}

fn of_kind(kind: &str, map: &Map<String, Value>) -> Alternative {
    match kind {
        "null" => Alternative::Null,
        "boolean" => Alternative::Boolean,
        "integer" | "number" => Alternative::Number(number(kind == "integer", map)),
        "string" => {
            Alternative::Text(rules(map, &["format", "pattern", "minLength", "maxLength", "contentEncoding", "not"]))
        }
        "array" => Alternative::List(list(map)),
        "object" => Alternative::Object(object(map)),
        _ => Alternative::Opaque(json!({ "type": kind })),
    }
}

fn rules(map: &Map<String, Value>, keys: &[&str]) -> Rules {
    keys.iter().filter_map(|key| Some(((*key).to_owned(), map.get(*key)?.clone()))).collect()
}

fn number(whole: bool, map: &Map<String, Value>) -> Number {
    let mut range = (f64::NEG_INFINITY, f64::INFINITY);
    let mut rules = rules(map, &["multipleOf", "exclusiveMinimum", "exclusiveMaximum", "format", "not"]);
    if let Some(of_format) = map.get("format").and_then(Value::as_str).and_then(range_of) {
        rules.remove("format");
        range = of_format;
    }
    let said = |key: &str| map.get(key).and_then(Value::as_f64);
    range.0 = said("minimum").map_or(range.0, |least| least.max(range.0));
    range.1 = said("maximum").map_or(range.1, |most| most.min(range.1));
    Number { whole, range, rules }
}

/// The range of the integers of a format. Where the last digits of a limit are lost, they are lost on both sides.
fn range_of(format: &str) -> Option<(f64, f64)> {
    let (signed, bits) = match format.strip_prefix('u') {
        Some(rest) => (false, rest.strip_prefix("int")?),
        None => (true, format.strip_prefix("int")?),
    };
    let bits: i32 = if bits.is_empty() { 64 } else { bits.parse().ok()? };
    let size = 2_f64.powi(if signed { bits - 1 } else { bits });
    Some((if signed { -size } else { 0.0 }, size - 1.0))
}

fn list(map: &Map<String, Value>) -> List {
    // Before draft 2020-12 a list of `items` was what `prefixItems` is now.
    let (first, items) = match (map.get("prefixItems"), map.get("items")) {
        (Some(Value::Array(first)), items) => (first.clone(), items.cloned()),
        (_, Some(Value::Array(first))) => (first.clone(), map.get("additionalItems").cloned()),
        (_, items) => (Vec::new(), items.cloned()),
    };
    List { first, items, rules: rules(map, &["minItems", "maxItems", "uniqueItems"]) }
}

fn object(map: &Map<String, Value>) -> Object {
    let named = |key: &str| {
        let members = map.get(key).and_then(Value::as_object).into_iter().flatten();
        members.map(|(name, schema)| (name.clone(), schema.clone())).collect()
    };
    let required = items_of(map, "required").iter().filter_map(Value::as_str).map(str::to_owned);
    Object {
        properties: named("properties"),
        patterns: named("patternProperties"),
        required: required.collect(),
        additional: map.get("additionalProperties").or_else(|| map.get("unevaluatedProperties")).cloned(),
        rules: rules(map, &["propertyNames", "minProperties", "maxProperties"]),
    }
}

/// A schema as it is compared where it cannot be followed: without notes, and with the schemas that it refers to, each at
/// its first mention.
fn spelled_out(schema: &Value, root: &Value, known: &mut BTreeSet<String>) -> Value {
    let map = match schema {
        Value::Object(map) => map,
        Value::Array(items) => return items.iter().map(|item| spelled_out(item, root, known)).collect(),
        _ => return schema.clone(),
    };
    let mut spelled = Map::new();
    for (key, value) in map.iter().filter(|(key, _)| !NOTES.contains(&key.as_str())) {
        let value = match value {
            Value::String(reference) if key == "$ref" && known.insert(reference.clone()) => {
                resolve(reference, root).map_or_else(|| value.clone(), |target| spelled_out(target, root, known))
            }
            Value::Object(members) if NAMED.contains(&key.as_str()) => {
                members.iter().map(|(name, schema)| (name.clone(), spelled_out(schema, root, known))).collect()
            }
            _ if PLAIN.contains(&key.as_str()) => value.clone(),
            _ => spelled_out(value, root, known),
        };
        spelled.insert(key.clone(), value);
    }
    Value::Object(spelled)
}

/// The values that are among both.
fn both(left: Vec<Alternative>, right: Vec<Alternative>) -> Vec<Alternative> {
    left.iter().flat_map(|left| right.iter().filter_map(move |right| meet(left, right))).collect()
}

fn meet(left: &Alternative, right: &Alternative) -> Option<Alternative> {
    use Alternative::{Anything, Boolean, List, Null, Number, Object, Opaque, Text, Values};
    Some(match (left, right) {
        (Anything, other) | (other, Anything) => other.clone(),
        (Opaque(left), Opaque(right)) => Opaque(json!([left, right])),
        (Opaque(opaque), _) | (_, Opaque(opaque)) => Opaque(opaque.clone()),
        (Null, Null) => Null,
        (Boolean, Boolean) => Boolean,
        (Values(left), Values(right)) => Values(left.iter().filter(|value| right.contains(value)).cloned().collect()),
        (Values(values), kind) | (kind, Values(values)) => {
            let of_kind = values.iter().filter(|value| is_of_kind(value, kind)).cloned();
            Values(of_kind.collect())
        }
        (Number(left), Number(right)) => Number(self::Number {
            whole: left.whole || right.whole,
            range: (left.range.0.max(right.range.0), left.range.1.min(right.range.1)),
            rules: joined(&left.rules, &right.rules),
        }),
        (Text(left), Text(right)) => Text(joined(left, right)),
        (List(left), List(right)) if left == right => List(left.clone()),
        (List(left), List(right)) => List(self::List {
            first: if left.first.is_empty() { right.first.clone() } else { left.first.clone() },
            items: left.items.clone().or_else(|| right.items.clone()),
            rules: joined(&left.rules, &right.rules),
        }),
        (Object(left), Object(right)) => Object(merged(left, right)),
        _ => return None,
    })
}

fn joined(left: &Rules, right: &Rules) -> Rules {
    left.iter().chain(right).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn merged(left: &Object, right: &Object) -> Object {
    let mut both = left.clone();
    for (all, more) in [(&mut both.properties, &right.properties), (&mut both.patterns, &right.patterns)] {
        for (name, schema) in more {
            let known = all.get(name).filter(|known| *known != schema);
            let schema = known.map_or_else(|| schema.clone(), |known| json!({ "allOf": [known, schema] }));
            all.insert(name.clone(), schema);
        }
    }
    both.required.extend(right.required.iter().cloned());
    both.rules = joined(&left.rules, &right.rules);
    let closed = [&left.additional, &right.additional].contains(&&Some(Value::Bool(false)));
    both.additional =
        if closed { Some(Value::Bool(false)) } else { left.additional.clone().or_else(|| right.additional.clone()) };
    both
}

/// Whether a listed value is of a kind, whatever its rules.
pub(super) fn is_of_kind(value: &Value, kind: &Alternative) -> bool {
    match kind {
        Alternative::Anything => true,
        Alternative::Null => value.is_null(),
        Alternative::Boolean => value.is_boolean(),
        Alternative::Values(values) => values.contains(value),
        Alternative::Number(number) => value
            .as_f64()
            .is_some_and(|it| (!number.whole || it.fract() == 0.0) && number.range.0 <= it && it <= number.range.1),
        Alternative::Text(_) => value.is_string(),
        Alternative::List(_) => value.is_array(),
        Alternative::Object(_) => value.is_object(),
        Alternative::Opaque(_) => false,
    }
}

impl Object {
    /// The text that a field always has.
    pub(super) fn constant(&self, field: &str, root: &Value) -> Option<String> {
        let schema = self.properties.get(field).filter(|_| self.required.contains(field))?;
        match alternatives(schema, root).as_slice() {
            [Alternative::Values(values)] => match values.as_slice() {
                [Value::String(value)] => Some(value.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it is a variant whose one property is its name, as serde writes an enum where nobody says otherwise.
    pub(super) fn is_external(&self) -> bool {
        let is_closed = self.additional == Some(Value::Bool(false));
        is_closed
            && self.patterns.is_empty()
            && self.properties.len() == 1
            && self.properties.keys().all(|name| self.required.contains(name))
    }
}
