//! The rules of a catalog. What needs types, the event types behind them, is checked in constants.

use quote::ToTokens;
use syn::ext::IdentExt;

use super::parse::{Event, Model};
use super::traits::method_of;
use crate::diag::Diagnostics;
use crate::grammar;

/// Reports what is wrong and keeps the events that can be generated for; whether any code can.
pub(crate) fn model(model: &mut Model, diag: &mut Diagnostics) -> bool {
    let item = &model.item;
    for parameter in &item.generics.params {
        diag.over(parameter, "a catalog names its events, so its enum has no parameters: write the types themselves");
    }
    if let Some(clause) = &item.generics.where_clause {
        diag.over(clause, "a catalog has no parameters, so it has no `where`: take it out");
    }
    if item.variants.is_empty() {
        diag.over(&item.ident, "a catalog has at least one event: write a variant such as `OrderPlaced(OrderPlaced)`");
    }
    if let Some(name) = &model.name
        && let Err(message) = catalog_name(&name.value())
    {
        diag.over(name, message);
    }
    let mut kept: Vec<Event> = Vec::new();
    for event in std::mem::take(&mut model.events) {
        let before = diag.count();
        against(&kept, &event, diag);
        wire(&kept, &event, diag);
        if diag.count() == before {
            kept.push(event);
        } else {
            model.is_partial = true;
        }
    }
    model.events = kept;
    model.item.generics.params.is_empty() && model.item.generics.where_clause.is_none()
}

/// A name that can begin a handler id and be read in a message.
fn catalog_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || name.len() > 128 || !name.chars().all(allowed) {
        return Err(
            "the name of a catalog has 1 to 128 bytes of letters, digits and `_ . -`: it begins handler ids".to_owned()
        );
    }
    Ok(())
}

/// Two variants under different `cfg`s may be alternatives.
fn may_meet(a: &Event, b: &Event) -> bool {
    let written = |event: &Event| event.cfgs.iter().map(|cfg| cfg.to_token_stream().to_string()).collect::<Vec<_>>();
    a.cfgs.is_empty() || b.cfgs.is_empty() || written(a) == written(b)
}

fn against(earlier: &[Event], event: &Event, diag: &mut Diagnostics) {
    if event
        .ty
        .to_token_stream()
        .into_iter()
        .any(|tree| matches!(&tree, proc_macro2::TokenTree::Punct(p) if p.as_char() == '&'))
    {
        diag.over(&event.ty, "a catalog owns its events: write the event's type without `&`");
    }
    if let Some(at) = crate::rewrite::find_impl(&event.ty) {
        diag.at(at, "a variant of a catalog names its event: write the type in place of `impl`");
    }
    let written = event.ty.to_token_stream().to_string();
    let others = || earlier.iter().filter(|other| may_meet(other, event));
    if let Some(other) = others().find(|other| other.ty.to_token_stream().to_string() == written) {
        let (written, name) = (written.replace(' ', ""), other.variant.unraw());
        diag.over(&event.ty, format!("`{written}` is in the catalog already, as `{name}`: keep one variant an event"));
    }
    let method = method_of(&event.variant);
    if let Some(other) = others().find(|other| method_of(&other.variant) == method) {
        let message =
            format!("`{}` and `{}` would both be handled by `{method}`: rename one", other.variant, event.variant);
        diag.over(&event.variant, message);
    }
}

fn wire(earlier: &[Event], event: &Event, diag: &mut Diagnostics) {
    let Some(wire) = &event.wire else { return };
    let name = wire.value();
    if name.is_empty() || name.chars().any(char::is_control) || name.len() > 255 {
        diag.at(wire.span(), "a wire name has 1 to 255 bytes without control characters, such as `Order Placed`");
    }
    let clash =
        |other: &&Event| may_meet(other, event) && other.wire.as_ref().is_some_and(|other| other.value() == name);
    if let Some(other) = earlier.iter().find(clash) {
        let message = format!("the wire name `{name}` is that of `{}` already: choose another one", other.variant);
        diag.at(wire.span(), message);
    }
}

/// Names that are texts are checked where they are written.
pub(crate) fn prefix(prefix: &syn::LitStr, diag: &mut Diagnostics) {
    if let Err(message) = grammar::handler_id(&prefix.value()) {
        diag.over(prefix, message);
    }
}
