//! Kinds, values and places as messages have them.

use serde_json::Value;

use super::shape::{Alternative, Number};

/// A kind in words, after "an" or "a".
pub(super) fn in_words(alternatives: &[Alternative]) -> String {
    let mut words: Vec<String> = Vec::new();
    for alternative in alternatives {
        let word = match alternative {
            Alternative::Anything => "any value".to_owned(),
            Alternative::Null => continue,
            Alternative::Boolean => "a boolean".to_owned(),
            Alternative::Values(values) if values.len() > 4 => "one of a list of values".to_owned(),
            Alternative::Values(values) => {
                let values: Vec<String> = values.iter().map(shown).collect();
                if values.len() == 1 {
                    format!("always {}", values[0])
                } else {
                    format!("one of {}", values.join(", "))
                }
            }
            Alternative::Number(number) if number.whole => "an integer".to_owned(),
            Alternative::Number(_) => "a number".to_owned(),
            Alternative::Text(_) => "a text".to_owned(),
            Alternative::List(_) => "a list".to_owned(),
            Alternative::Object(_) => "an object".to_owned(),
            Alternative::Opaque(_) => "something that a rule describes".to_owned(),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.is_empty() { "null".to_owned() } else { words.join(" or ") }
}

/// A value as a message shows it: texts without quotes.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        value => format!("`{value}`"),
    }
}

/// The place in the words of a sentence.
pub(super) fn subject(path: &str) -> String {
    if path.is_empty() { "the payload".to_owned() } else { format!("`{path}`") }
}

/// The place of a field.
pub(super) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// `0 to 255`.
pub(super) fn range_in_words(number: &Number) -> String {
    let (least, most) = (limit_in_words(number.range.0), limit_in_words(number.range.1));
    match number.range {
        (from, to) if from.is_finite() && to.is_finite() => format!("{least} to {most}"),
        (from, _) if from.is_finite() => format!("at least {least}"),
        (_, to) if to.is_finite() => format!("at most {most}"),
        _ => "any".to_owned(),
    }
}

/// A limit with all its digits: the largest number of 64 bits and more is kept as the power of two above it.
fn limit_in_words(limit: f64) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if limit.abs() < EXACT || !limit.is_finite() || limit.log2().fract() != 0.0 && limit > 0.0 {
        return limit.to_string();
    }
    if limit < 0.0 { format!("{}", limit as i128) } else { format!("{}", limit as u128 - 1) }
}

/// A keyword of JSON Schema in words.
pub(super) fn rule_in_words(rule: &str) -> &str {
    match rule {
        "minLength" | "minItems" | "minProperties" => "least length",
        "maxLength" | "maxItems" | "maxProperties" => "largest length",
        "uniqueItems" => "uniqueness",
        "multipleOf" => "step",
        "exclusiveMinimum" | "exclusiveMaximum" => "limit",
        "contentEncoding" => "encoding",
        "not" => "exclusion",
        "propertyNames" => "rule about the names",
        other => other,
    }
}
