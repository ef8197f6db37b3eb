//! Generates the function that runs its body in a transaction.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, Pat, Type};

use super::check::Handle;
use super::parse::Model;

/// ```text
/// async fn place(__relaybus_scope: impl TransactionScope<PgTransaction>, order: &Order) -> Result<()> {
///     run_transaction(__relaybus_scope, None, async |tx: &mut PgTransaction| -> Result<()> {
///         let __relaybus_value: Result<()> = { .. };
///         __relaybus_value
///     })
///     .await
/// }
/// ```
pub(crate) fn function(model: &Model, handle: &Handle<'_>) -> TokenStream {
    let function = &model.function;
    let (attrs, visibility, body) = (&function.attrs, &function.visibility, &function.body);
    let (ty, output, pattern) = (handle.ty, handle.output, &handle.argument.pat);
    let scope = Ident::new("__relaybus_scope", Span::mixed_site().located_at(pattern.span()));
    let at = Span::call_site().located_at(ty.span());
    let krate = model.krate(at);
    let bound = quote_spanned!(at=> impl #krate::__private::TransactionScope<#ty>);
    // The user's own tokens but for one type, so that lints speak of the function as if it had no attribute.
    let mut signature = function.signature.clone();
    let first = signature.inputs.iter_mut().find_map(|input| match input {
        FnArg::Typed(argument) => Some(argument),
        FnArg::Receiver(_) => None,
    });
    if let Some(first) = first {
        first.attrs.clear();
        *first.pat = Pat::Verbatim(quote!(#scope));
        *first.ty = Type::Verbatim(bound);
    }
    let attrs_of_handle = &handle.argument.attrs;
    // Through a variable: the compiler says what is wrong with the body's value at that value, and not at the body.
    let value = Ident::new("__relaybus_value", Span::mixed_site());
    let work = quote! {
        async |#(#attrs_of_handle)* #pattern: &mut #ty| -> #output {
            let #value: #output = #body;
            #value
        }
    };
    let run = run(model, handle, &scope, &work);
    quote! {
        #(#attrs)*
        #visibility #signature {
            #run
        }
    }
}

/// The call that runs the work. What is wrong with the types is said at the function's output, which fixes them.
fn run(model: &Model, handle: &Handle<'_>, scope: &Ident, work: &TokenStream) -> TokenStream {
    let at = Span::call_site().located_at(handle.output.span());
    let krate = model.krate(at);
    let Some(isolation) = model.isolation else {
        return quote_spanned!(at=> #krate::__private::run_transaction(#scope, #work).await);
    };
    let variant = format_ident!("{}", isolation.variant());
    let level = quote!(#krate::__private::IsolationLevel::#variant);
    if model.attempts == 1 {
        return quote_spanned!(at=> #krate::__private::run_transaction_at(#scope, #level, #work).await);
    }
    let attempts = model.attempts;
    quote_spanned!(at=> #krate::__private::rerun_transaction(#scope, #level, #attempts, #work).await)
}
