//! The fields of objects: those that both sides list, those that one does, and those that are only described.

use serde_json::Value;

use super::shape::Object;
use super::walk::{Direction, Walk};
use super::words::{joined, subject};
use super::{Audience, Severity};

impl Walk<'_> {
    pub(super) fn fields(&mut self, path: &str, writer: &Object, reader: &Object) {
        self.rules(path, &writer.rules, &reader.rules);
        for name in &reader.required {
            if !writer.required.contains(name) {
                let field = joined(path, name);
                let what = match (writer.properties.contains_key(name), self.direction) {
                    (true, Direction::NewToDeployed) => format!("the field `{field}` may be left out now"),
                    (true, Direction::OldToNew) => format!("the field `{field}` became required"),
                    (false, Direction::NewToDeployed) => format!("the field `{field}` was removed"),
                    (false, Direction::OldToNew) => format!("the required field `{field}` was added"),
                };
                self.breaks(&field, what);
            }
        }
        for (name, given) in &writer.properties {
            match (reader.properties.get(name), &reader.additional) {
                (Some(wanted), _) => self.node(&joined(path, name), given, wanted),
                (None, Some(Value::Bool(false))) => {
                    let field = joined(path, name);
                    let (seen, who) = match self.direction {
                        Direction::NewToDeployed => ("added", "deployed consumers refuse"),
                        Direction::OldToNew => ("removed", "consumers of this version refuse"),
                    };
                    self.breaks(
                        &field,
                        format!("the field `{field}` was {seen}, and {who} fields that they do not know"),
                    );
                }
                (None, Some(wanted)) => self.node(&joined(path, name), given, wanted),
                (None, None) => {}
            }
        }
        self.fields_by_pattern(path, writer, reader);
        self.optional_fields(path, writer, reader);
        self.further_fields(path, writer, reader);
    }

    /// The fields whose names fit a pattern of the writer.
    fn fields_by_pattern(&mut self, path: &str, writer: &Object, reader: &Object) {
        for (pattern, given) in &writer.patterns {
            let wanted = reader.patterns.iter().find(|(known, _)| is_within(pattern, known)).map(|(_, schema)| schema);
            match (wanted, &reader.additional) {
                (None, Some(Value::Bool(false))) => {
                    let wanted: Vec<String> = reader.patterns.keys().map(|known| format!("`{known}`")).collect();
                    let wanted = if wanted.is_empty() { "a list of names".to_owned() } else { wanted.join(", ") };
                    let (old, new) = self.in_time(format!("`{pattern}`"), wanted);
                    self.breaks(path, format!("the names of fields in {} changed from {old} to {new}", subject(path)));
                }
                (Some(wanted), _) | (None, Some(wanted)) => self.node(&format!("{path}{{}}"), given, wanted),
                (None, None) => {}
            }
        }
    }

    /// Fields that only the reader has, and can do without.
    fn optional_fields(&mut self, path: &str, writer: &Object, reader: &Object) {
        let is_map = writer.additional.as_ref().is_some_and(|schema| *schema != Value::Bool(false));
        for (name, wanted) in &reader.properties {
            if writer.properties.contains_key(name) || reader.required.contains(name) {
                continue;
            }
            let field = joined(path, name);
            match (&writer.additional, self.direction) {
                (Some(given), _) if is_map => self.node(&field, given, wanted),
                (_, Direction::OldToNew) => {
                    self.report(
                        &field,
                        format!("the optional field `{field}` was added"),
                        Severity::Compatible,
                        vec![],
                    );
                }
                (_, Direction::NewToDeployed) => {
                    let why = "they decode the new events, and never find it again";
                    let affects = vec![(Audience::DeployedConsumers, why.to_owned())];
                    self.report(&field, format!("the field `{field}` was removed"), Severity::Breaking, affects);
                }
            }
        }
    }

    /// What is said of fields that are not listed: the values of a map, or that there are none.
    fn further_fields(&mut self, path: &str, writer: &Object, reader: &Object) {
        let (given, Some(wanted)) = (&writer.additional, &reader.additional) else { return };
        let has_any = given.as_ref().filter(|given| **given != Value::Bool(false));
        match (has_any, *wanted == Value::Bool(false)) {
            (Some(given), false) => self.node(&format!("{path}{{}}"), given, wanted),
            (Some(_), true) => {
                let (old, new) = self.in_time("any", "listed");
                let what =
                    format!("{} changed from an object with {old} fields to one with {new} fields", subject(path));
                self.breaks(path, what);
            }
            (None, true) if given.is_none() && self.direction == Direction::OldToNew => {
                let what = format!("{} refuses fields that it does not know now", subject(path));
                let why = "consumers of this version refuse events with a field more";
                self.report(path, what, Severity::Caution, vec![(Audience::LaterPublishers, why.to_owned())]);
            }
            (None, _) => {}
        }
    }
}

/// Whether names that fit `pattern` fit `wider`: the same, or the numbers with a sign.
fn is_within(pattern: &str, wider: &str) -> bool {
    pattern == wider || (pattern == r"^\d+$" && wider == r"^-?\d+$")
}
