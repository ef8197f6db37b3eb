//! One spelling of each schema, whatever the order in which a map or a set was filled, so that files compare by line.

use serde_json::{Map, Value};

/// What writers always write, beside what readers need: in a schema whose two sides differ.
const WRITTEN: &str = "x-always-written";

/// The keys sorted, and the lists that are sets.
pub(super) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            // Sorted by hand: a feature of `serde_json` keeps the order of insertion.
            let sorted = keys.into_iter().map(|key| (key.clone(), member(key, &map[key])));
            Value::Object(sorted.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn member(key: &str, value: &Value) -> Value {
    match value {
        // A field may be called so too: it has an object or a boolean.
        Value::Array(names) if key == "required" || key == WRITTEN => {
            let mut names = names.clone();
            names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            Value::Array(names)
        }
        _ => canonical(value),
    }
}

/// One schema for both sides, where they differ only in the fields that must be there: readers need fewer than writers
/// write. Nothing when they differ in more.
pub(super) fn merged(reads: &Value, writes: &Value) -> Option<Value> {
    match (reads, writes) {
        (Value::Object(reads), Value::Object(writes)) => merged_objects(reads, writes).map(Value::Object),
        (Value::Array(reads), Value::Array(writes)) if reads.len() == writes.len() => {
            let items = reads.iter().zip(writes).map(|(reads, writes)| merged(reads, writes));
            items.collect::<Option<Vec<_>>>().map(Value::Array)
        }
        _ => (reads == writes).then(|| reads.clone()),
    }
}

fn merged_objects(reads: &Map<String, Value>, writes: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut both = Map::new();
    for (key, value) in reads {
        match (value, writes.get(key)) {
            (Value::Array(_), _) if key == "required" => {
                both.insert(key.clone(), value.clone());
            }
            (_, Some(written)) => {
                both.insert(key.clone(), merged(value, written)?);
            }
            (_, None) => return None,
        }
    }
    let names = |map: &Map<String, Value>| map.get("required").filter(|names| names.is_array()).cloned();
    let only_written =
        |(key, value): (&String, &Value)| !reads.contains_key(key) && (key != "required" || !value.is_array());
    if writes.iter().any(only_written) {
        return None;
    }
    if names(reads) != names(writes) {
        both.insert(WRITTEN.to_owned(), names(writes).unwrap_or_else(|| Value::Array(Vec::new())));
    }
    Some(both)
}

/// The reader's half of a merged schema.
pub(super) fn reads(merged: &Value) -> Value {
    half(merged, &mut |map| {
        map.remove(WRITTEN);
    })
}

/// The writer's half of a merged schema.
pub(super) fn writes(merged: &Value) -> Value {
    half(merged, &mut |map| {
        match map.remove(WRITTEN) {
            Some(Value::Array(written)) if written.is_empty() => map.remove("required"),
            Some(written) => map.insert("required".to_owned(), written),
            None => None,
        };
    })
}

fn half(value: &Value, change: &mut impl FnMut(&mut Map<String, Value>)) -> Value {
    match value {
        Value::Object(map) => {
            let mut map: Map<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), half(value, change))).collect();
            if map.get(WRITTEN).is_some_and(Value::is_array) {
                change(&mut map);
            }
            canonical(&Value::Object(map))
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| half(item, change)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_and_sets_are_sorted_and_lists_are_not() {
        let value = json!({ "b": [2, 1], "a": { "required": ["z", "y"] }, "required": { "type": "string" } });
        let text = canonical(&value).to_string();
        assert_eq!(text, r#"{"a":{"required":["y","z"]},"b":[2,1],"required":{"type":"string"}}"#);
    }

    #[test]
    fn two_sides_that_differ_in_required_fields_are_one_schema_and_come_apart_again() {
        let reads_ = canonical(&json!({ "properties": { "a": { "required": ["x"] }, "b": true }, "required": ["a"] }));
        let writes_ =
            canonical(&json!({ "properties": { "a": { "required": ["x"] }, "b": true }, "required": ["a", "b"] }));
        let both = merged(&reads_, &writes_).unwrap();
        assert_eq!(both["x-always-written"], json!(["a", "b"]));
        assert_eq!((reads(&both), writes(&both)), (reads_, writes_));
    }

    #[test]
    fn a_side_without_required_fields_comes_back_too() {
        let (none, one) = (json!({ "type": "object" }), json!({ "required": ["a"], "type": "object" }));
        for (reads_, writes_) in [(&none, &one), (&one, &none), (&one, &one)] {
            let both = merged(reads_, writes_).unwrap();
            assert_eq!((reads(&both), writes(&both)), (reads_.clone(), writes_.clone()));
        }
    }

    #[test]
    fn sides_that_differ_in_more_are_not_merged() {
        assert_eq!(merged(&json!({ "type": "string" }), &json!({ "type": "integer" })), None);
        assert_eq!(merged(&json!({}), &json!({ "minimum": 1 })), None);
    }
}
