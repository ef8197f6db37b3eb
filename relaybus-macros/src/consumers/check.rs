//! The rules of a block of consumers.

use proc_macro2::Span;
use syn::{ReceiverKind, Type};

use super::parse::{Method, Model};
use crate::consumer::check::signature;
use crate::diag::Diagnostics;
use crate::rewrite::ungrouped;

pub(crate) fn model(model: &Model, diag: &mut Diagnostics) {
    let block = &model.block;
    if let Some((name, _)) = &block.trait_ {
        diag.over(name, "`#[consumers]` goes on an impl block of the type itself: take the methods out of the trait's");
    }
    for parameter in &block.generics.params {
        diag.over(
            parameter,
            "the bus finds the instance by its type, so the type of a `#[consumers]` block has no parameters: write them out",
        );
    }
    if !matches!(ungrouped(&block.self_ty), Type::Path(_)) {
        diag.over(&block.self_ty, "`#[consumers]` goes on an impl block of a struct or an enum");
    }
    if model.methods.is_empty() && block.trait_.is_none() {
        diag.at(Span::call_site(), "no method of this block is a consumer: write `#[consumer(OrderPlaced)]` on one");
    }
    for method in &model.methods {
        receiver(method, diag);
        signature(&method.function.signature, diag);
    }
}

fn receiver(method: &Method, diag: &mut Diagnostics) {
    let signature = &method.function.signature;
    let Some(receiver) = signature.receiver() else {
        diag.over(
            &signature.ident,
            "a consumer in a `#[consumers]` block takes `&self`: add it, or move the function out of the block",
        );
        return;
    };
    match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => {}
        ReceiverKind::Reference(_, _, Some(_)) => diag.over(
            receiver,
            "a consumer takes `&self`, because its runs share the instance: keep what changes behind a lock",
        ),
        _ => diag.over(receiver, "a consumer takes `&self`, because its runs share the instance"),
    }
}
