//! Whether every value that one side writes is one that the other side reads, and where it is not, what changed.

use std::collections::HashSet;

use serde_json::Value;

use super::shape::{Alternative, List, Number, Object, Rules, alternatives, is_of_kind};
use super::words::{in_words, range_in_words, rule_in_words, shown, subject};
use super::{Audience, Severity};

/// Who reads whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Consumers already deployed read what is written from now on.
    NewToDeployed,
    /// Consumers from now on read what is stored, and what publishers send that are not upgraded.
    OldToNew,
}

/// A place where a value would not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) what: String,
    pub(super) severity: Severity,
    pub(super) affects: Vec<(Audience, String)>,
}

/// What consumers already deployed get from publishers of the new contract.
const NOT_DECODED_NEW: &str = "they cannot decode the new events";
/// What consumers of the new contract get from the old one.
const NOT_DECODED_STORED: &str = "they cannot decode those events";
const NOT_DECODED_SENT: &str = "consumers of this version cannot decode what they send";

/// Most findings of a comparison: a type that is used in many places may differ in all of them.
const MOST: usize = 200;

/// A comparison of one writer with one reader, in one direction.
pub(super) struct Walk<'s> {
    pub(super) direction: Direction,
    pub(super) writer: &'s Value,
    pub(super) reader: &'s Value,
    /// Pairs that are being compared: types may contain themselves.
    open: HashSet<(String, String)>,
    /// Pairs about which there is nothing to say: types are used in many places.
    fine: HashSet<(String, String)>,
    pub(super) found: Vec<Finding>,
}

impl<'s> Walk<'s> {
    /// Compares what `writer` writes with what `reader` reads, from the payload on.
    pub(super) fn compare(direction: Direction, writer: &'s Value, reader: &'s Value) -> Vec<Finding> {
        let mut walk = Self::new(direction, writer, reader, HashSet::new());
        walk.node("", writer, reader);
        walk.found
    }

    fn new(direction: Direction, writer: &'s Value, reader: &'s Value, open: HashSet<(String, String)>) -> Self {
        Self { direction, writer, reader, open, fine: HashSet::new(), found: Vec::new() }
    }

    /// What is older, and what is newer.
    pub(super) fn in_time<T>(&self, writer: T, reader: T) -> (T, T) {
        match self.direction {
            Direction::NewToDeployed => (reader, writer),
            Direction::OldToNew => (writer, reader),
        }
    }

    /// The words for a change in the writer, or for the opposite one.
    fn seen_from<'w>(&self, new: &'w str, old: &'w str) -> &'w str {
        match self.direction {
            Direction::NewToDeployed => new,
            Direction::OldToNew => old,
        }
    }

    fn affects(&self) -> Vec<(Audience, String)> {
        match self.direction {
            Direction::NewToDeployed => vec![(Audience::DeployedConsumers, NOT_DECODED_NEW.to_owned())],
            Direction::OldToNew => vec![
                (Audience::StoredEvents, NOT_DECODED_STORED.to_owned()),
                (Audience::DeployedPublishers, NOT_DECODED_SENT.to_owned()),
            ],
        }
    }

    pub(super) fn breaks(&mut self, path: &str, what: String) {
        let affects = self.affects();
        self.report(path, what, Severity::Breaking, affects);
    }

    /// What the reader decodes, but not all of it.
    fn loses(&mut self, path: &str, what: String, why: &str) {
        let mut affects = self.affects();
        affects.truncate(1);
        affects.iter_mut().for_each(|(_, said)| why.clone_into(said));
        self.report(path, what, Severity::Caution, affects);
    }

    pub(super) fn report(&mut self, path: &str, what: String, severity: Severity, affects: Vec<(Audience, String)>) {
        self.found.push(Finding { path: path.to_owned(), what, severity, affects });
    }

    pub(super) fn node(&mut self, path: &str, writer: &Value, reader: &Value) {
        let pair = (writer.to_string(), reader.to_string());
        if self.found.len() >= MOST || self.fine.contains(&pair) || !self.open.insert(pair.clone()) {
            return;
        }
        let before = self.found.len();
        let (writes, reads) = (alternatives(writer, self.writer), alternatives(reader, self.reader));
        self.kinds(path, &writes, &reads);
        self.open.remove(&pair);
        if self.found.len() == before {
            self.fine.insert(pair);
        }
    }

    fn kinds(&mut self, path: &str, writes: &[Alternative], reads: &[Alternative]) {
        if reads.contains(&Alternative::Anything) {
            return;
        }
        if writes.iter().any(|alternative| !has_kind(alternative, reads)) {
            let (old, new) = self.in_time(in_words(writes), in_words(reads));
            let what = if old == new {
                format!("{} has other rules, which this check does not know", subject(path))
            } else {
                format!("{} changed from {old} to {new}", subject(path))
            };
            return self.breaks(path, what);
        }
        for (index, alternative) in writes.iter().enumerate() {
            match alternative {
                Alternative::Null if !reads.contains(&Alternative::Null) => {
                    let what = self.seen_from("may be null now", "may no longer be null").to_owned();
                    self.breaks(path, format!("{} {what}", subject(path)));
                }
                Alternative::Values(values) => self.values(path, values, reads),
                Alternative::Number(_) | Alternative::Text(_) | Alternative::List(_) => {
                    let before = writes[..index].iter().filter(|other| is_same_kind(alternative, other)).count();
                    self.plain(path, alternative, before, reads);
                }
                Alternative::Object(_)
                | Alternative::Null
                | Alternative::Boolean
                | Alternative::Anything
                | Alternative::Opaque(_) => {}
            }
        }
        self.variants(path, writes, reads);
    }

    /// A kind whose alternatives have no names: any that reads it will do, and else it is compared with the one in its place.
    fn plain(&mut self, path: &str, given: &Alternative, place: usize, reads: &[Alternative]) {
        let of_kind: Vec<&Alternative> = reads.iter().filter(|wanted| is_same_kind(given, wanted)).collect();
        let is_read = |wanted: &&Alternative| self.trial(|walk| walk.pair(path, given, wanted)).is_empty();
        if of_kind.len() > 1 && of_kind.iter().any(is_read) {
            return;
        }
        if let Some(wanted) = of_kind.get(place).or(of_kind.first()) {
            self.pair(path, given, wanted);
        }
    }

    fn pair(&mut self, path: &str, given: &Alternative, wanted: &Alternative) {
        match (given, wanted) {
            (Alternative::Number(given), Alternative::Number(wanted)) => self.number(path, given, wanted),
            (Alternative::Text(given), Alternative::Text(wanted)) => self.rules(path, given, wanted),
            (Alternative::List(given), Alternative::List(wanted)) => self.list(path, given, wanted),
            _ => {}
        }
    }

    /// What would be found, without finding it.
    fn trial(&self, work: impl FnOnce(&mut Walk<'s>)) -> Vec<Finding> {
        let mut trial = Walk::new(self.direction, self.writer, self.reader, self.open.clone());
        trial.fine.clone_from(&self.fine);
        work(&mut trial);
        trial.found
    }

    fn values(&mut self, path: &str, values: &[Value], reads: &[Alternative]) {
        let is_read = |value: &Value| reads.iter().any(|kind| is_of_kind(value, kind) && !has_form(kind));
        for value in values.iter().filter(|value| !is_read(value)) {
            self.case(path, &format!("the value {}", shown(value)));
        }
    }

    /// A value or variant of an enum that the reader does not have.
    pub(super) fn case(&mut self, path: &str, case: &str) {
        let place = subject(path);
        match self.direction {
            Direction::OldToNew => self.breaks(path, format!("{case} of {place} was removed")),
            Direction::NewToDeployed => {
                let why = "they cannot decode events that have it: deploy them first, before anybody publishes it";
                let affects = vec![(Audience::DeployedConsumers, why.to_owned())];
                self.report(path, format!("{case} of {place} was added"), Severity::Caution, affects);
            }
        }
    }

    fn number(&mut self, path: &str, number: &Number, wanted: &Number) {
        if number.range.0 < wanted.range.0 || number.range.1 > wanted.range.1 {
            let (old, new) = self.in_time(range_in_words(number), range_in_words(wanted));
            self.breaks(path, format!("the range of {} changed from {old} to {new}", subject(path)));
        }
        let is = |number: &Number, format: &str| number.rules.get("format").is_some_and(|it| it == format);
        let drops_digits = is(number, "double") && is(wanted, "float");
        let mut others = wanted.rules.clone();
        if number.whole || is(wanted, "double") || is(wanted, "float") {
            others.remove("format");
        }
        if drops_digits {
            let (old, new) = self.in_time("double", "float");
            let what = format!("the precision of {} changed from {old} to {new}", subject(path));
            self.loses(path, what, "they read it with fewer digits");
        }
        self.rules(path, &number.rules, &others);
    }

    /// Rules of the reader that the writer does not keep.
    pub(super) fn rules(&mut self, path: &str, writer: &Rules, reader: &Rules) {
        for (rule, wanted) in reader {
            let given = writer.get(rule);
            let pair = (given.and_then(Value::as_f64), wanted.as_f64());
            let is_kept = match pair {
                (Some(given), Some(wanted)) if rule.starts_with("min") => given >= wanted,
                (Some(given), Some(wanted)) if rule.starts_with("max") => given <= wanted,
                _ => given == Some(wanted) || (rule.starts_with("min") && wanted == 0),
            };
            if !is_kept {
                let given = given.map_or_else(|| "none".to_owned(), shown);
                let (old, new) = self.in_time(given, shown(wanted));
                self.breaks(
                    path,
                    format!("the {} of {} changed from {old} to {new}", rule_in_words(rule), subject(path)),
                );
            }
        }
    }

    fn list(&mut self, path: &str, writer: &List, reader: &List) {
        let mut rules = reader.rules.clone();
        // A set is written as a list, and reads any list.
        if let Some(unique) =
            rules.remove("uniqueItems").filter(|unique| Some(unique) != writer.rules.get("uniqueItems"))
        {
            let (old, new) = self.in_time("none".to_owned(), shown(&unique));
            let what = format!("the uniqueness of {} changed from {old} to {new}", subject(path));
            self.loses(path, what, "they read once what is in it twice");
        }
        self.rules(path, &writer.rules, &rules);
        let at = |list: &List, index: usize| list.first.get(index).or(list.items.as_ref()).cloned();
        for index in 0..writer.first.len().max(reader.first.len()) {
            if let (Some(given), Some(wanted)) = (at(writer, index), at(reader, index)) {
                self.node(&format!("{path}[{index}]"), &given, &wanted);
            }
        }
        let anything = Value::Bool(true);
        let given = writer.items.as_ref().or((!writer.rules.contains_key("maxItems")).then_some(&anything));
        if let (Some(given), Some(wanted)) = (given, &reader.items) {
            self.node(&format!("{path}[]"), given, wanted);
        }
    }

    /// Compares two objects, once: a type may be a part of itself.
    pub(super) fn object(&mut self, path: &str, writer: &Object, reader: &Object) {
        let pair = (format!("{writer:?}"), format!("{reader:?}"));
        if self.open.insert(pair.clone()) {
            self.fields(path, writer, reader);
            self.open.remove(&pair);
        }
    }

    /// Whether the reader would read it, with nothing to say about it.
    pub(super) fn reads(&self, given: &Object, wanted: &Object) -> bool {
        let found = self.trial(|walk| walk.object("", given, wanted));
        found.iter().all(|finding| finding.severity == Severity::Compatible)
    }
}

fn is_same_kind(given: &Alternative, wanted: &Alternative) -> bool {
    match (given, wanted) {
        (Alternative::Number(given), Alternative::Number(wanted)) => given.whole || !wanted.whole,
        (Alternative::Text(_), Alternative::Text(_)) | (Alternative::List(_), Alternative::List(_)) => true,
        _ => false,
    }
}

/// Whether some kind of the reader is one of the writer's, whatever the rules about it.
fn has_kind(given: &Alternative, reads: &[Alternative]) -> bool {
    use Alternative::{Anything, Boolean, List, Null, Number, Object, Opaque, Text, Values};
    reads.iter().any(|wanted| match (given, wanted) {
        (Null, _) => true,
        (Values(values), Values(wanted)) => {
            let kind = |value: &Value| std::mem::discriminant(value);
            values.iter().all(|value| wanted.iter().any(|other| kind(value) == kind(other)))
        }
        (Values(values), Object(variant)) => values.iter().all(Value::is_string) && variant.is_external(),
        (Values(values), kind) => values.iter().all(|value| is_of_kind(value, kind)),
        // An enum whose last variant without data went, or whose first with data came.
        (Object(variant), Values(values)) => values.iter().all(Value::is_string) && variant.is_external(),
        (Number(given), Number(wanted)) => given.whole || !wanted.whole,
        (Opaque(given), Opaque(wanted)) => given == wanted,
        (Boolean, Boolean) | (Text(_), Text(_)) | (List(_), List(_)) | (Object(_), Object(_)) => true,
        (Anything | Boolean | Number(_) | Text(_) | List(_) | Object(_) | Opaque(_), _) => false,
    })
}

/// Whether a kind is of texts of one form, which no list of names has.
fn has_form(kind: &Alternative) -> bool {
    matches!(kind, Alternative::Text(rules) if rules.contains_key("format") || rules.contains_key("pattern"))
}
