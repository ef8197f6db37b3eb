//! `#[consumer]` on a function: parse, check, generate. Its settings and generated parts serve `#[consumers]` too.

pub(crate) mod check;
pub(crate) mod generate;
pub(crate) mod parse;
pub(crate) mod settings;

use proc_macro2::TokenStream;
use quote::quote;

use crate::{diag, lint};

/// Expands the attribute: the item as it was written, and what the attribute adds to it.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    diag::collect(|diag| {
        let model = parse::model(arguments, item.clone(), diag);
        if model.as_ref().is_some_and(|model| model.settings.transactional) {
            lint::transactional_item(&item, diag);
        }
        let item = lint::without_allows(item);
        let added = model.map(|model| {
            let alone = check::function(&model.function, diag);
            match (diag.is_empty(), &model.event) {
                (true, Some(event)) => generate::consumer(&model, event),
                _ if alone => generate::inert(&model),
                _ => TokenStream::new(),
            }
        });
        quote!(#item #added)
    })
}
