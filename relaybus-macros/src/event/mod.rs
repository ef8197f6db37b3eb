//! `#[derive(Event)]`: parse, check, generate.

mod check;
mod generate;
mod parse;

use proc_macro2::TokenStream;

use crate::diag;

/// Expands the derive.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    diag::collect(|diag| {
        let Some(model) = parse::model(input, diag) else { return TokenStream::new() };
        check::model(&model, diag);
        if diag.is_empty() { generate::implementation(&model) } else { generate::inert(&model) }
    })
}
