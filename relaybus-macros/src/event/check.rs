//! The rules of an event that need more than one part of the input.

use quote::ToTokens;
use syn::{Attribute, Data, DeriveInput, Fields, Member};

use super::parse::{Key, Model, is_enum};
use crate::diag::Diagnostics;
use crate::grammar::{self, nearest};

pub(crate) fn model(model: &Model, diag: &mut Diagnostics) {
    owned_data(&model.input, diag);
    no_inner_attributes(&model.input, diag);
    if let Some(text) = &model.event_type
        && let Err(message) = grammar::event_type(&text.value())
    {
        diag.over(text, message);
    }
    if let Some(Key::Field(fields)) = &model.key
        && let Some(first) = fields.first()
    {
        key_field(&model.input, first, diag);
    }
    if let Some(Key::Closure(closure)) = &model.key
        && closure.inputs.len() != 1
    {
        diag.over(closure, "a closure for a key takes the event: write `key = |event| ..`");
    }
}

/// An event outlives whatever published it, so it borrows nothing.
fn owned_data(input: &DeriveInput, diag: &mut Diagnostics) {
    for lifetime in input.generics.lifetimes() {
        diag.over(
            lifetime,
            "an event owns its data and has no lifetimes: use `String` for `&str`, `Vec<T>` for `&[T]`, or `Cow<'static, str>`",
        );
    }
    if let Data::Union(union) = &input.data {
        diag.over(union.union_token, "an event is a struct or an enum");
    }
}

/// `#[event(key)]` on a field is a natural guess; it would be ignored without this.
fn no_inner_attributes(input: &DeriveInput, diag: &mut Diagnostics) {
    let mut check = |attrs: &[Attribute], instead: &str| {
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("event")) {
            diag.over(attr, format!("`event` goes on the type: write `#[event(\"..\", {instead})]` there"));
        }
    };
    let check_fields = |fields: &Fields, check: &mut dyn FnMut(&[Attribute], &str)| {
        for (index, field) in fields.iter().enumerate() {
            let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
            check(&field.attrs, &format!("key = {name}"));
        }
    };
    match &input.data {
        Data::Struct(data) => check_fields(&data.fields, &mut check),
        Data::Enum(data) => {
            for variant in &data.variants {
                check(&variant.attrs, "key = Self::key");
                check_fields(&variant.fields, &mut |attrs, _| check(attrs, "key = Self::key"));
            }
        }
        Data::Union(_) => {}
    }
}

fn key_field(input: &DeriveInput, first: &Member, diag: &mut Diagnostics) {
    let written = first.to_token_stream().to_string();
    let event = &input.ident;
    if is_enum(input) {
        let function = as_function(first);
        let what = "is an enum, which has no field for a key: name a function by its path, such as";
        diag.over(first, format!("`{event}` {what} `key = {function}`"));
        return;
    }
    let names = field_names(input);
    if names.contains(&written) {
        return;
    }
    let hint = match nearest(&written, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("it has {names}; a function is named by its path, such as `{}`", as_function(first))
        }
    };
    diag.over(first, format!("`{event}` has no field `{written}`: {hint}"));
}

/// The function that was perhaps meant by the name of a field.
fn as_function(field: &Member) -> String {
    match field {
        Member::Named(name) => format!("Self::{name}"),
        Member::Unnamed(_) => "Self::key".to_owned(),
    }
}

fn field_names(input: &DeriveInput) -> Vec<String> {
    match &input.data {
        Data::Struct(data) => data.fields.members().map(|member| member.to_token_stream().to_string()).collect(),
        Data::Enum(_) | Data::Union(_) => Vec::new(),
    }
}
