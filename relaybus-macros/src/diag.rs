//! The collector of errors: an input's errors are reported together, each on its own span.
//!
//! A collector exists only inside [`collect`], which turns what it holds into `compile_error!`s, so no error can be
//! dropped on the way. Parsing and checking go on after an error wherever they can.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};

/// The errors of one input.
#[derive(Default)]
pub(crate) struct Diagnostics {
    errors: Vec<syn::Error>,
}

impl Diagnostics {
    /// Reports `message` at one place.
    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.errors.push(syn::Error::new(span, message));
    }

    /// Reports `message` over all of `tokens`.
    pub(crate) fn over(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.errors.push(syn::Error::new_spanned(tokens, message));
    }

    /// Reports an error of the parser.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.errors.push(error);
    }

    /// The value, or nothing after reporting the error.
    pub(crate) fn ok<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Whether nothing was reported.
    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// How many errors were reported.
    pub(crate) fn count(&self) -> usize {
        self.errors.len()
    }
}

/// Runs a macro that writes items: they are followed by the errors that it reported.
pub(crate) fn collect(expand: impl FnOnce(&mut Diagnostics) -> TokenStream) -> TokenStream {
    let mut diag = Diagnostics::default();
    let mut output = expand(&mut diag);
    output.extend(diag.errors.iter().map(syn::Error::to_compile_error));
    output
}

/// Runs a macro that writes an expression.
pub(crate) fn collect_in_expression(expand: impl FnOnce(&mut Diagnostics) -> TokenStream) -> TokenStream {
    let mut diag = Diagnostics::default();
    let output = expand(&mut diag);
    if diag.is_empty() {
        return output;
    }
    let errors = diag.errors.iter().map(syn::Error::to_compile_error);
    quote!({ #(#errors)* #output })
}
