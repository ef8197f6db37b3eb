//! `relaybus::module!`: parse, check, generate.

mod check;
mod generate;
mod parse;

use proc_macro2::TokenStream;

use crate::diag;

/// Expands the contract, which the macro by example `relaybus::module!` has given the path of its crate.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    diag::collect(|diag| {
        let mut model = parse::model(input, diag);
        check::model(&mut model, diag);
        if diag.is_empty() { generate::module(&model) } else { generate::inert(&model) }
    })
}
