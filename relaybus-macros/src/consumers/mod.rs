//! `#[consumers]` on an impl block: parse, check, generate.

mod check;
pub(crate) mod generate;
mod parse;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use crate::{catalog, diag, lint};

/// Expands the attribute: the block without the attributes of its consumers, and what they add to it.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    diag::collect(|diag| {
        if catalog::consumers::is_meant(&arguments, &item) {
            if catalog::consumers::is_transactional(&item) {
                lint::transactional_block(&item, diag);
            }
            return catalog::consumers::expand(arguments, lint::without_allows(item), diag);
        }
        let Some(model) = parse::model(arguments, item.clone(), diag) else { return item };
        check::model(&model, diag);
        let added = if diag.is_empty() { generate::consumers(&model) } else { generate::inert(&model) };
        let block = lint::without_allows(model.block.into_token_stream());
        quote!(#block #added)
    })
}
