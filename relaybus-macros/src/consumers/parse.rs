//! Parses the attribute and the impl block into a model, and takes the consumers' attributes out of the block.

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::{Attribute, ImplItem, ImplItemFn, ItemImpl, Meta, Type};

use crate::args::{Arguments, Place};
use crate::consumer::parse::{Function, is_consumer};
use crate::consumer::settings::{self, Settings};
use crate::diag::Diagnostics;
use crate::{krate, lint};

/// What the attribute was given and stands on.
pub(crate) struct Model {
    /// The block as it is emitted.
    pub(crate) block: ItemImpl,
    pub(crate) methods: Vec<Method>,
    /// The type that lists the consumers in place of the block's own.
    pub(crate) companion: Option<Ident>,
    /// Whether another type was meant to list them, and cannot.
    pub(crate) is_unlisted: bool,
    pub(crate) krate: TokenStream,
}

/// A method with `#[consumer(..)]`.
pub(crate) struct Method {
    pub(crate) function: Function,
    pub(crate) event: Option<Type>,
    pub(crate) settings: Settings,
}

pub(crate) fn model(arguments: TokenStream, item: TokenStream, diag: &mut Diagnostics) -> Option<Model> {
    let start = item.clone().into_iter().next().map_or_else(Span::call_site, |tree| tree.span());
    let arguments = Arguments::read(arguments, Place::Consumers, diag);
    let companion = arguments.name("companion", diag);
    let is_unlisted = companion.is_none() && arguments.find("companion").is_some();
    let krate = krate::path(&arguments, diag);
    let block = match syn::parse2::<ItemImpl>(item.clone()) {
        Ok(block) => block,
        // A block that does not parse is reported where it goes wrong.
        Err(error) if item.into_iter().any(|tree| tree.to_string() == "impl") => {
            diag.push(error);
            return None;
        }
        Err(_) => {
            diag.at(start, "`#[consumers]` goes on an impl block: on a function write `#[consumer(..)]`");
            return None;
        }
    };
    let mut model = Model { block, methods: Vec::new(), companion, is_unlisted, krate };
    for item in &mut model.block.items {
        if let ImplItem::Fn(item) = item {
            model.methods.extend(method(item, diag));
        }
    }
    Some(model)
}

fn method(item: &mut ImplItemFn, diag: &mut Diagnostics) -> Option<Method> {
    let (consumers, attrs): (Vec<Attribute>, Vec<Attribute>) =
        std::mem::take(&mut item.attrs).into_iter().partition(is_consumer);
    item.attrs = attrs;
    let first = consumers.first()?;
    for second in consumers.iter().skip(1) {
        diag.over(second, "a method is one consumer: write a second method for the other event");
    }
    let arguments = match &first.meta {
        Meta::List(list) => Arguments::read(list.tokens.clone(), Place::Method, diag),
        Meta::Path(_) | Meta::NameValue(_) => Arguments::default(),
    };
    let function = Function { attrs: item.attrs.clone(), visibility: item.vis.clone(), signature: item.sig.clone() };
    let event = settings::event(&arguments, Some(first), diag);
    let settings = Settings::read(&arguments, diag);
    if settings.transactional {
        lint::transaction(&item.attrs, &item.sig, item.block.to_token_stream(), diag);
    }
    Some(Method { function, event, settings })
}
