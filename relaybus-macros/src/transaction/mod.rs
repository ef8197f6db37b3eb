//! `#[transaction]` on an async function or method: parse, check, generate.

mod check;
mod generate;
mod parse;

use proc_macro2::TokenStream;

use crate::{diag, lint};

/// Expands the attribute: a function that takes a bus or a transaction in place of the handle.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    diag::collect(|diag| {
        let as_written = lint::without_allows(item.clone());
        let Some(mut model) = parse::model(arguments, item, diag) else { return as_written };
        let function = &mut model.function;
        lint::transaction(&function.attrs, &function.signature, function.body.clone(), diag);
        function.attrs.retain(|attr| !lint::is_allowance(attr));
        function.body = lint::without_allows(std::mem::take(&mut function.body));
        match check::model(&model, diag) {
            Some(handle) => generate::function(&model, &handle),
            None => as_written,
        }
    })
}
