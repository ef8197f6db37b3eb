//! The rules of a consumer's signature.

use syn::{FnArg, GenericParam, Signature, Type};

use super::parse::{Function, is_consumer};
use crate::diag::Diagnostics;
use crate::rewrite::{find_impl, ungrouped};

/// Checks a free function; whether items may be generated beside it. They may not beside a method, and a function
/// with the attribute twice would get two of each.
pub(crate) fn function(function: &Function, diag: &mut Diagnostics) -> bool {
    let second = function.attrs.iter().find(|attr| is_consumer(attr));
    if let Some(second) = second {
        diag.over(second, "a function is one consumer: write a second function for the other event");
    }
    let receiver = function.signature.receiver();
    if let Some(receiver) = receiver {
        diag.over(
            receiver,
            "a consumer with `self` is a method: put `#[consumers]` on its impl block, and keep `#[consumer(..)]` here",
        );
    }
    signature(&function.signature, diag);
    receiver.is_none() && second.is_none()
}

/// Checks what functions and methods have in common.
pub(crate) fn signature(signature: &Signature, diag: &mut Diagnostics) {
    if signature.asyncness.is_none() {
        diag.over(signature.fn_token, format!("a consumer is an async function: write `async fn {}`", signature.ident));
    }
    if !matches!(signature.safety, syn::Safety::Default) {
        diag.over(
            &signature.safety,
            "a consumer is called by the bus, which calls no `unsafe` function: take `unsafe` out",
        );
    }
    for parameter in &signature.generics.params {
        if !matches!(parameter, GenericParam::Lifetime(_)) {
            diag.over(
                parameter,
                "a consumer is called by the bus, which cannot choose its type parameters: write the types themselves",
            );
        }
    }
    for input in &signature.inputs {
        if let FnArg::Typed(input) = input {
            argument(&input.ty, diag);
        }
    }
    // Without `async`, `impl Future` is the same mistake.
    if signature.asyncness.is_some()
        && let syn::ReturnType::Type(_, output) = &signature.output
        && let Some(at) = find_impl(output)
    {
        diag.at(at, "a consumer returns `()` or `Result<(), E>`: name the type in place of `impl`");
    }
}

fn argument(ty: &Type, diag: &mut Diagnostics) {
    if let Some(at) = find_impl(ty) {
        diag.at(at, "an argument of a consumer is found by its type: name the type in place of `impl`");
    }
    if let Type::Reference(reference) = ungrouped(ty)
        && let Some(lifetime) = &reference.lifetime
        && lifetime.ident == "static"
    {
        diag.over(lifetime, "what a consumer borrows lives as long as its run: take `'static` out");
    }
}
