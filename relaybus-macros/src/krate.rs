//! The path of relaybus in generated code.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use crate::args::Arguments;
use crate::diag::Diagnostics;

/// The path that `crate = ..` gives, or `::relaybus`.
pub(crate) fn path(arguments: &Arguments, diag: &mut Diagnostics) -> TokenStream {
    arguments.path("crate", diag).map_or_else(|| quote!(::relaybus), ToTokens::into_token_stream)
}

/// Wraps the items of a declaration in an anonymous constant, where `__relaybus` is the module that generated code uses. A
/// wrong path of relaybus is then one error, at the path.
///
/// To declare something deprecated is not to use it.
pub(crate) fn in_const(krate: &TokenStream, attrs: &[syn::Attribute], items: &TokenStream) -> TokenStream {
    let items = uses_in_const(krate, items);
    quote!(#(#attrs)* #[allow(deprecated, reason = "it is declared, not used")] #items)
}

/// As [`in_const`], for items that use what the user names.
pub(crate) fn uses_in_const(krate: &TokenStream, items: &TokenStream) -> TokenStream {
    quote! {
        const _: () = {
            use #krate::__private as __relaybus;
            #items
        };
    }
}
