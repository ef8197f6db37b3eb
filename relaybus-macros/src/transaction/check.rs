//! The rules of a transaction's signature.

use syn::{FnArg, PatType, ReceiverKind, Signature, Type};

use super::parse::{Model, is_transaction};
use crate::diag::Diagnostics;
use crate::rewrite::{find_impl, ungrouped};

/// The first parameter of a transaction: `#pattern: &mut #ty`.
pub(crate) struct Handle<'m> {
    pub(crate) argument: &'m PatType,
    pub(crate) ty: &'m Type,
    pub(crate) output: &'m Type,
}

/// Checks the function; its handle and output, if a function can be generated.
pub(crate) fn model<'m>(model: &'m Model, diag: &mut Diagnostics) -> Option<Handle<'m>> {
    let before = diag.count();
    let signature = &model.function.signature;
    if let Some(second) = model.function.attrs.iter().find(|attr| is_transaction(attr)) {
        diag.over(second, "a function is one transaction: keep one of the attributes");
    }
    if signature.asyncness.is_none() {
        let message = format!("a transaction is an async function: write `async fn {}`", signature.ident);
        diag.over(signature.fn_token, message);
    }
    if !matches!(signature.safety, syn::Safety::Default) {
        diag.over(&signature.safety, "the body of a transaction runs in a closure, which is not `unsafe`: take it out");
    }
    let handle = handle(signature, diag);
    let output = output(signature, diag);
    if model.attempts > 1 {
        reruns(signature, diag);
    }
    let (argument, ty) = handle?;
    Some(Handle { argument, ty, output: output? }).filter(|_| diag.count() == before)
}

fn handle<'s>(signature: &'s Signature, diag: &mut Diagnostics) -> Option<(&'s PatType, &'s Type)> {
    let first = signature.inputs.iter().find_map(|input| match input {
        FnArg::Typed(argument) => Some(argument),
        FnArg::Receiver(_) => None,
    });
    let expected = "write `tx: &mut PgTransaction`, with the transaction or connection of your store";
    let Some(argument) = first else {
        diag.over(&signature.ident, format!("the first parameter of a transaction is its handle: {expected}"));
        return None;
    };
    let Type::Reference(reference) = ungrouped(&argument.ty) else {
        diag.over(&argument.ty, format!("the first parameter of a transaction is its handle: {expected}"));
        return None;
    };
    if reference.mutability.is_none() {
        diag.over(reference, format!("the handle of a transaction is borrowed as `&mut`: {expected}"));
        return None;
    }
    if let Some(lifetime) = &reference.lifetime {
        diag.over(lifetime, "the handle lives as long as the transaction: take the lifetime out");
        return None;
    }
    if let Some(at) = find_impl(&reference.elem) {
        diag.at(at, "the transaction is opened for the type of the handle: name the type in place of `impl`");
        return None;
    }
    Some((argument, &reference.elem))
}

fn output<'s>(signature: &'s Signature, diag: &mut Diagnostics) -> Option<&'s Type> {
    let message = "a transaction commits on `Ok` and rolls back on `Err`: return a `Result`";
    let syn::ReturnType::Type(_, output) = &signature.output else {
        diag.over(&signature.ident, message);
        return None;
    };
    if is_no_result(output) {
        diag.over(output, message);
        return None;
    }
    if let Some(at) = find_impl(output) {
        diag.at(at, "a transaction returns a `Result`: name the type in place of `impl`");
        return None;
    }
    Some(output)
}

/// Whether a type is one of those that everybody knows are no result. About others the compiler has the word.
fn is_no_result(ty: &Type) -> bool {
    const KNOWN: &[&str] = &[
        "bool", "char", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
        "f64", "String", "Option", "Vec",
    ];
    match ungrouped(ty) {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| KNOWN.iter().any(|known| last.ident == known)),
        Type::Tuple(_) | Type::Reference(_) | Type::Array(_) | Type::Never(_) => true,
        _ => false,
    }
}

/// What would change with each run of a transaction that may run more than once.
fn reruns(signature: &Signature, diag: &mut Diagnostics) {
    let fix = "a transaction at this isolation level may run more than once, and changes nothing but the database";
    let mut is_handle = true;
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                if matches!(receiver.kind, ReceiverKind::Reference(_, _, Some(_))) {
                    diag.over(receiver, format!("{fix}: take `&self`, or set `attempts = 1`"));
                }
            }
            FnArg::Typed(_) if is_handle => is_handle = false,
            FnArg::Typed(argument) => {
                if let Type::Reference(reference) = ungrouped(&argument.ty)
                    && reference.mutability.is_some()
                {
                    diag.over(&argument.ty, format!("{fix}: take it by `&` or by value, or set `attempts = 1`"));
                }
            }
        }
    }
}
