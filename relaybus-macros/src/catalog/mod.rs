//! `#[catalog]` on an enum: parse, check, generate. `consumers` is `#[consumers(Catalog)]` on an implementation of the
//! handler trait that it generates.

mod check;
pub(crate) mod consumers;
mod generate;
mod parse;
mod traits;

use proc_macro2::TokenStream;
use quote::quote;

use crate::diag;

/// Expands the attribute: the enum without the attributes of its wire names, and what they add to it.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    diag::collect(|diag| {
        let Some(mut model) = parse::model(arguments, item.clone(), diag) else { return item };
        let fits = check::model(&mut model, diag);
        let added = if fits { generate::catalog(&model) } else { TokenStream::new() };
        let item = &model.item;
        quote!(#item #added)
    })
}
