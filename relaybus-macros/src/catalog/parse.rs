//! Parses the attribute and the enum into a model, and takes the wire names out of the enum.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{Attribute, Fields, ItemEnum, LitStr, Meta, Path, Type};

use crate::args::{Arguments, Place};
use crate::diag::Diagnostics;
use crate::krate;
use crate::value::text_of;

/// What the attribute was given and stands on.
pub(crate) struct Model {
    /// The enum as it is emitted.
    pub(crate) item: ItemEnum,
    pub(crate) events: Vec<Event>,
    /// Variants that could not be read: the enum has them, the catalog does not.
    pub(crate) is_partial: bool,
    pub(crate) name: Option<LitStr>,
    /// The catalog that it is a part of.
    pub(crate) of: Option<Path>,
    /// The argument that asks for JSON schemas.
    pub(crate) schema: bool,
    pub(crate) krate: TokenStream,
}

/// A variant with its event.
pub(crate) struct Event {
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) variant: Ident,
    pub(crate) ty: Type,
    pub(crate) wire: Option<LitStr>,
}

pub(crate) fn model(arguments: TokenStream, item: TokenStream, diag: &mut Diagnostics) -> Option<Model> {
    let start = item.clone().into_iter().next().map_or_else(Span::call_site, |tree| tree.span());
    let arguments = Arguments::read(arguments, Place::Catalog, diag);
    let name = arguments.text("name", diag);
    let of = arguments.path("of", diag);
    let schema = arguments.find("schema").is_some();
    let krate = krate::path(&arguments, diag);
    let mut item = match syn::parse2::<ItemEnum>(item.clone()) {
        Ok(item) => item,
        // An enum that does not parse is reported where it goes wrong.
        Err(error) if item.into_iter().any(|tree| tree.to_string() == "enum") => {
            diag.push(error);
            return None;
        }
        Err(_) => {
            diag.at(start, "`#[catalog]` goes on an enum with one variant an event: `enum OrderEvents { OrderPlaced(OrderPlaced) }`");
            return None;
        }
    };
    item.attrs.retain(|attr| {
        let is_catalog = attr.path().segments.last().is_some_and(|last| last.ident == "catalog");
        if is_catalog {
            diag.over(attr, "an enum is one catalog: write its arguments into one `#[catalog(..)]`");
        }
        !is_catalog
    });
    let (mut events, mut is_partial) = (Vec::new(), false);
    for variant in &mut item.variants {
        let wire = take_wire(&mut variant.attrs, diag);
        let cfgs = variant.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
        if let Some((_, value)) = &variant.discriminant {
            diag.over(value, "a variant of a catalog is its event and has no number: take it out");
        }
        match event_type(&variant.fields) {
            Some(ty) => events.push(Event { cfgs, variant: variant.ident.clone(), ty, wire }),
            None => {
                is_partial = true;
                let name = &variant.ident;
                diag.over(&*variant, format!("a variant of a catalog holds one event: write `{name}({name})`"));
            }
        }
    }
    Some(Model { item, events, is_partial, name, of, schema, krate })
}

/// The event of a variant: its one field, which has no name.
fn event_type(fields: &Fields) -> Option<Type> {
    match fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first().map(|field| field.ty.clone()),
        Fields::Unnamed(_) | Fields::Named(_) | Fields::Unit => None,
    }
}

/// Whether `cfg_attr(.., wire(..))` gives a wire name.
fn names_wire(meta: &Meta) -> bool {
    let arguments = if let Meta::List(list) = meta { list.tokens.clone() } else { TokenStream::new() };
    arguments.into_iter().any(|tree| matches!(&tree, TokenTree::Ident(ident) if ident == "wire"))
}

/// Takes `#[wire("..")]` out of the attributes of a variant.
fn take_wire(attrs: &mut Vec<Attribute>, diag: &mut Diagnostics) -> Option<LitStr> {
    let is_hidden = |attr: &&mut Attribute| attr.path().is_ident("cfg_attr") && names_wire(&attr.meta);
    for hidden in attrs.iter_mut().filter(is_hidden) {
        diag.over(
            &*hidden,
            "`wire` is not read inside of `cfg_attr`: write the variant once for each `cfg`, with its wire name",
        );
        hidden.meta = syn::parse_quote!(cfg(all()));
    }
    let (wires, others): (Vec<Attribute>, Vec<Attribute>) =
        std::mem::take(attrs).into_iter().partition(|attr| attr.path().is_ident("wire"));
    *attrs = others;
    let first = wires.first()?;
    for second in wires.iter().skip(1) {
        diag.over(second, "an event has one wire name: keep one `#[wire(..)]`");
    }
    let text = match &first.meta {
        Meta::List(list) => syn::parse2::<syn::Expr>(list.tokens.clone()).ok().and_then(|expr| text_of(&expr).cloned()),
        Meta::Path(_) | Meta::NameValue(_) => None,
    };
    if text.is_none() {
        diag.over(
            first,
            "`wire` takes the name of the event on the wire, as a text: write `#[wire(\"Order Placed\")]`",
        );
    }
    text
}
