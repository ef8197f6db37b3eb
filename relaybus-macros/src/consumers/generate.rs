//! Generates a companion for each consumer of the block, and the list of them on the block's type or its companion.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ItemImpl;

use super::parse::{Method, Model};
use crate::consumer::generate::{HandlerType, entry, handles, implementation, list};
use crate::krate;

/// ```text
/// enum __relaybus_on_placed {}
/// impl Handler for __relaybus_on_placed { .. }
/// impl Consumers for Shipping { type Handles = ..; const ENTRIES: &'static [Entry] = &[Entry::of::<..>()]; }
/// ```
pub(crate) fn consumers(model: &Model) -> TokenStream {
    let this = &model.block.self_ty;
    let (mut implementations, mut entries, mut all_handles) = (TokenStream::new(), Vec::new(), Vec::new());
    for method in &model.methods {
        let Some(event) = &method.event else { continue };
        let Method { function, settings, .. } = method;
        let cfgs = function.cfgs();
        let handler = HandlerType { function, event, settings, this: Some(this) };
        implementations.extend(implementation(&handler));
        let entry = entry(function);
        entries.push(quote!(#(#cfgs)* #entry));
        if cfgs.is_empty() {
            all_handles.extend(handles(&handler));
        }
    }
    let (declared, owner) = owner(&model.block, model.companion.as_ref());
    let list = list(&owner, &entries, &all_handles);
    let items = in_const(model, &quote!(#implementations #list));
    quote!(#declared #items)
}

/// The type that lists the consumers of a block: its own, or the companion, which is declared beside it.
pub(crate) fn owner(block: &ItemImpl, companion: Option<&Ident>) -> (TokenStream, TokenStream) {
    let Some(companion) = companion else { return (TokenStream::new(), block.self_ty.to_token_stream()) };
    let cfgs = block.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    let mut companion = companion.clone();
    companion.set_span(Span::call_site().located_at(companion.span()));
    let declared = quote! {
        #(#cfgs)*
        #[doc(hidden)]
        pub(crate) enum #companion {}
    };
    (declared, companion.into_token_stream())
}

/// What keeps other code from failing too after an error: a type without handlers.
pub(crate) fn inert(model: &Model) -> TokenStream {
    if model.is_unlisted || !model.block.generics.params.is_empty() {
        return TokenStream::new();
    }
    let (declared, owner) = owner(&model.block, model.companion.as_ref());
    let items = in_const(model, &list(&owner, &[], &[]));
    quote!(#declared #items)
}

fn in_const(model: &Model, items: &TokenStream) -> TokenStream {
    let cfgs: Vec<_> = model.block.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
    krate::in_const(&model.krate, &cfgs, items)
}
