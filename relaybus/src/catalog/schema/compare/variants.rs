//! Objects that stand for the variants of an enum: which of the writer's is which of the reader's.

use std::collections::HashSet;

use serde_json::Value;

use super::shape::{Alternative, Object};
use super::walk::Walk;

/// What tells a variant from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tag {
    /// The text in a field that all variants have.
    Field(String),
    /// The name of the one field, as serde writes an enum where nobody says otherwise.
    Name(String),
    /// Nothing but its fields.
    None,
}

impl Walk<'_> {
    /// Compares the objects among the alternatives.
    pub(super) fn variants(&mut self, path: &str, writes: &[Alternative], reads: &[Alternative]) {
        let is_enum =
            [writes, reads].iter().any(|kinds| kinds.iter().any(|kind| matches!(kind, Alternative::Values(_))));
        let (writes, reads) = (objects(writes), objects(reads));
        let names = |objects: &[&Object]| objects.iter().filter_map(|object| object.variant_name()).collect::<Vec<_>>();
        if let ([given], [wanted]) = (writes.as_slice(), reads.as_slice())
            && (!is_enum || names(&writes) == names(&reads))
        {
            return self.object(path, given, wanted);
        }
        let field = self.tag_field(&writes, &reads);
        let tag = |object: &Object, root: &Value| {
            let constant = field.as_ref().and_then(|field| object.constant(field, root)).map(Tag::Field);
            constant.or_else(|| object.variant_name().map(Tag::Name)).unwrap_or(Tag::None)
        };
        let reads: Vec<(&Object, Tag)> = reads.into_iter().map(|object| (object, tag(object, self.reader))).collect();
        for (index, given) in writes.into_iter().enumerate() {
            let tag = tag(given, self.writer);
            self.variant(path, index, given, &tag, &reads);
        }
    }

    fn variant(&mut self, path: &str, index: usize, given: &Object, tag: &Tag, reads: &[(&Object, Tag)]) {
        let same = reads.iter().find(|(_, other)| *tag != Tag::None && other == tag);
        match (same, tag) {
            (Some((wanted, _)), Tag::Field(value)) => self.object(&format!("{path}<{value}>"), given, wanted),
            (Some((wanted, _)), _) => self.object(path, given, wanted),
            (None, _) if reads.iter().any(|(wanted, other)| *other == Tag::None && self.reads(given, wanted)) => {}
            (None, Tag::Field(name) | Tag::Name(name)) => self.case(path, &format!("the variant `{name}`")),
            (None, Tag::None) => match reads.get(index).filter(|(_, other)| *other == Tag::None) {
                Some((wanted, _)) => self.object(path, given, wanted),
                None => self.case(path, &format!("the alternative with {}", fields_in_words(given))),
            },
        }
    }

    /// The field that has another constant text in each of the variants, on both sides.
    fn tag_field(&self, writes: &[&Object], reads: &[&Object]) -> Option<String> {
        let fits = |field: &String, objects: &[&Object], root: &Value| {
            let values: Option<Vec<String>> = objects.iter().map(|object| object.constant(field, root)).collect();
            values.is_some_and(|values| values.iter().collect::<HashSet<_>>().len() == values.len())
        };
        let fields = writes.first().or(reads.first())?.properties.keys();
        fields.into_iter().find(|field| fits(field, writes, self.writer) && fits(field, reads, self.reader)).cloned()
    }
}

fn objects(kinds: &[Alternative]) -> Vec<&Object> {
    let mut objects = Vec::new();
    for kind in kinds {
        if let Alternative::Object(object) = kind {
            objects.push(object);
        }
    }
    objects
}

impl Object {
    fn variant_name(&self) -> Option<String> {
        self.properties.keys().next().filter(|_| self.is_external()).cloned()
    }
}

fn fields_in_words(object: &Object) -> String {
    let names: Vec<String> = object.properties.keys().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "no fields".to_owned() } else { names.join(", ") }
}
