//! `handlers![..]`: parse, check, generate.

mod check;
mod generate;
mod parse;

use proc_macro2::TokenStream;

use crate::diag;

/// Expands the list, which the macro by example `relaybus::handlers!` has given the path of its crate.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    diag::collect_in_expression(|diag| {
        let mut model = parse::model(input, diag);
        check::model(&mut model, diag);
        generate::list(&model)
    })
}
