//! Parses the derive's input into a model: the type, its name on the wire, its key and its validation.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Data, DeriveInput, Expr, ExprClosure, ExprPath, Index, Lit, LitStr, Member, Meta, Path};

use crate::args::{Arguments, Place};
use crate::diag::Diagnostics;
use crate::grammar::proposed_event_type;
use crate::krate;
use crate::value::{literal, text_of, ungrouped};

/// What the derive was given.
pub(crate) struct Model {
    pub(crate) input: DeriveInput,
    pub(crate) event_type: Option<LitStr>,
    pub(crate) key: Option<Key>,
    pub(crate) validate: Option<Path>,
    pub(crate) krate: TokenStream,
}

/// Where the ordering key comes from.
pub(crate) enum Key {
    /// A field, or a field of a field.
    Field(Vec<Member>),
    /// A function of the event.
    Function(ExprPath),
    /// A closure of the event.
    Closure(ExprClosure),
}

pub(crate) fn model(input: TokenStream, diag: &mut Diagnostics) -> Option<Model> {
    let input: DeriveInput = diag.ok(syn::parse2(input))?;
    let mut arguments = Arguments::default();
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("event")) {
        match &attr.meta {
            Meta::List(list) => arguments.read_more(list.tokens.clone(), Place::Event, diag),
            Meta::Path(_) | Meta::NameValue(_) => {
                diag.over(attr, format!("`event` takes arguments: write `{}`", proposal(&input)));
                arguments.faulty = true;
            }
        }
    }
    let event_type = event_type(&input, &arguments, diag);
    let key = arguments.expr("key").and_then(|expr| key(expr, diag));
    let validate = arguments.path("validate", diag);
    let krate = krate::path(&arguments, diag);
    Some(Model { input, event_type, key, validate, krate })
}

fn event_type(input: &DeriveInput, arguments: &Arguments, diag: &mut Diagnostics) -> Option<LitStr> {
    for extra in arguments.positional.iter().skip(1) {
        diag.over(extra, "an event has one type: keep one text");
    }
    let Some(first) = arguments.positional.first() else {
        if !arguments.faulty {
            let message = format!("the event `{}` needs its type: add `{}`", input.ident, proposal(input));
            diag.over(&input.ident, message);
        }
        return None;
    };
    let text = syn::parse2::<Expr>(first.clone()).ok().and_then(|expr| text_of(&expr).cloned());
    if text.is_none() {
        diag.over(first, format!("expected the event's type as a text: write `{}`", proposal(input)));
    }
    text
}

fn proposal(input: &DeriveInput) -> String {
    format!("#[event(\"{}\")]", proposed_event_type(&input.ident.to_string()))
}

fn key(expr: &Expr, diag: &mut Diagnostics) -> Option<Key> {
    if let Some(fields) = field_path(expr) {
        return Some(Key::Field(fields));
    }
    match expr {
        Expr::Closure(closure) => return Some(Key::Closure(closure.clone())),
        Expr::Path(function) if !function.path.is_ident("self") => return Some(Key::Function(function.clone())),
        Expr::Field(_) => {
            let written = expr.to_token_stream().to_string().replace(' ', "");
            let field = written.trim_start_matches("self.");
            diag.over(expr, format!("a key is written from the event on: write `key = {field}`"));
        }
        expr if text_of(expr).is_some() => {
            let name = text_of(expr).map(LitStr::value).unwrap_or_default();
            diag.over(expr, format!("a key is a field, without quotes: write `key = {name}`"));
        }
        expr => diag.over(
            expr,
            "a key is a field (`order_id`, `customer.id`, `0`), a function (`Self::key`) or a closure (`|event| ..`)",
        ),
    }
    None
}

/// The members of `order_id`, `customer.id`, `0` or `0.1`; nothing for other expressions.
fn field_path(expr: &Expr) -> Option<Vec<Member>> {
    match ungrouped(expr) {
        Expr::Path(path) if path.qself.is_none() && !path.path.is_ident("self") && !path.path.is_ident("Self") => {
            path.path.get_ident().map(|ident| vec![Member::Named(ident.clone())])
        }
        Expr::Field(field) => {
            let mut members = field_path(&field.base)?;
            members.push(field.member.clone());
            Some(members)
        }
        expr => match literal(expr)? {
            Lit::Int(number) if number.suffix().is_empty() => Some(vec![index(number.base10_digits(), number.span())?]),
            // `0.1` is one number to the lexer.
            Lit::Float(number) if number.suffix().is_empty() => {
                number.to_string().split('.').map(|digits| index(digits, number.span())).collect()
            }
            _ => None,
        },
    }
}

fn index(digits: &str, span: proc_macro2::Span) -> Option<Member> {
    digits.parse().ok().map(|index| Member::Unnamed(Index { index, span }))
}

/// Whether the type is an enum.
pub(crate) fn is_enum(input: &DeriveInput) -> bool {
    matches!(input.data, Data::Enum(_))
}
