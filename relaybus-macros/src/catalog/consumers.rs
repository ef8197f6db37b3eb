//! `#[consumers(Catalog)]` on an implementation of the catalog's handler trait: registers its methods together.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{GenericArgument, ImplItem, ItemImpl, LitStr, Path, PathArguments, Type};

use super::check;
use crate::args::{Arguments, Place, names_something};
use crate::consumer::generate::list;
use crate::consumer::parse::is_consumer;
use crate::consumer::settings::Settings;
use crate::consumers::generate::owner;
use crate::diag::Diagnostics;
use crate::krate;
use crate::rewrite::ungrouped;

/// What the attribute was given and stands on.
struct Model {
    catalog: Type,
    block: ItemImpl,
    /// The type that lists the consumers in place of the block's own.
    companion: Option<Ident>,
    prefix: Option<LitStr>,
    settings: Settings,
    krate: TokenStream,
}

/// Whether the arguments name a catalog. A block of the type's own methods with `#[consumer]` needs none.
pub(crate) fn is_meant(arguments: &TokenStream, item: &TokenStream) -> bool {
    let has_consumers = |block: &ItemImpl| {
        block.items.iter().any(|item| matches!(item, ImplItem::Fn(method) if method.attrs.iter().any(is_consumer)))
    };
    names_something(arguments, Place::CatalogConsumers)
        && !syn::parse2::<ItemImpl>(item.clone()).is_ok_and(|block| block.trait_.is_none() && has_consumers(&block))
}

/// Whether the block is of a transactional handler trait: the one that names the transaction handle.
pub(crate) fn is_transactional(item: &TokenStream) -> bool {
    let block = syn::parse2::<ItemImpl>(item.clone()).ok();
    block.and_then(|block| block.trait_).is_some_and(|(path, _)| handle(&path).is_some())
}

/// Expands the attribute: the block as it was written, and the registration.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream, diag: &mut Diagnostics) -> TokenStream {
    let before = diag.count();
    let Some(mut model) = parse(arguments, item.clone(), diag) else { return item };
    let this = check_block(&mut model, diag);
    let added = this.map(|this| if diag.count() == before { registration(&model, &this) } else { inert(&model) });
    let block = &model.block;
    quote!(#block #added)
}

fn parse(arguments: TokenStream, item: TokenStream, diag: &mut Diagnostics) -> Option<Model> {
    let start = item.clone().into_iter().next().map_or_else(Span::call_site, |tree| tree.span());
    let arguments = Arguments::read(arguments, Place::CatalogConsumers, diag);
    let krate = krate::path(&arguments, diag);
    let settings = Settings::read(&arguments, diag);
    let companion = arguments.name("companion", diag);
    let prefix = arguments.text("prefix", diag);
    if let Some(prefix) = &prefix {
        check::prefix(prefix, diag);
    }
    for extra in arguments.positional.iter().skip(1) {
        diag.over(extra, "`#[consumers(..)]` names one catalog: implement the handler trait of the other one too");
    }
    let first = arguments.positional.first()?.clone();
    let catalog = syn::parse2::<Type>(first.clone()).ok();
    if catalog.is_none() {
        diag.over(first, "expected the catalog's Rust type, such as `OrderEvents`");
    }
    match syn::parse2::<ItemImpl>(item.clone()) {
        Ok(block) => Some(Model { catalog: catalog?, block, companion, prefix, settings, krate }),
        Err(error) if item.into_iter().any(|tree| tree.to_string() == "impl") => {
            diag.push(error);
            None
        }
        Err(_) => {
            diag.at(start, "`#[consumers(OrderEvents)]` goes on `impl OrderEventsHandlers for` a type of yours");
            None
        }
    }
}

/// The type that handles, when something can be generated for it.
fn check_block(model: &mut Model, diag: &mut Diagnostics) -> Option<Type> {
    let block = &mut model.block;
    for parameter in &block.generics.params {
        diag.over(
            parameter,
            "the bus finds the instance by its type, so the type of a `#[consumers]` block has no parameters: write them out",
        );
    }
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item {
            for attr in method.attrs.iter().filter(|attr| is_consumer(attr)) {
                diag.over(attr, "the methods of a catalog's handler trait are its consumers: take the attribute out");
            }
            method.attrs.retain(|attr| !is_consumer(attr));
        }
    }
    let this = ungrouped(&block.self_ty).clone();
    if !matches!(this, Type::Path(_)) {
        diag.over(&block.self_ty, "`#[consumers(..)]` goes on an implementation for a struct or an enum");
        return None;
    }
    let Some((trait_path, _)) = &block.trait_ else {
        let catalog = model.catalog.to_token_stream().to_string().replace(' ', "");
        let name = catalog.rsplit("::").next().unwrap_or_default();
        diag.over(
            &block.self_ty,
            format!("`#[consumers({catalog})]` goes on an implementation of its handler trait: write `impl {name}Handlers for ..`"),
        );
        return None;
    };
    if model.settings.transactional && handle(trait_path).is_none() {
        diag.over(
            trait_path,
            "`transactional` handlers take the transaction: implement the `..TxHandlers<H>` trait, `H` being the store's handle",
        );
    }
    block.generics.params.is_empty().then_some(this)
}

/// The transaction handle of the handler trait: the transactional one has it as a parameter.
fn handle(trait_path: &Path) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &trait_path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(handle) => Some(handle),
        _ => None,
    })
}

fn located(tokens: &impl Spanned) -> Span {
    Span::call_site().located_at(tokens.span())
}

/// ```text
/// const IDS: &[CatalogId; N] = &ids("Shipping", OrderEvents::EVENTS);
/// const ENTRIES: &[Entry; N] = &entries(IDS, <OrderEvents as HandledBy<Shipping>>::ENTRIES, OPTIONS, LOCATION);
/// impl Consumers for Shipping { type Handles = (); const ENTRIES: &'static [Entry] = ENTRIES; }
/// inventory::submit! { EntryGroup(ENTRIES) }
/// ```
///
/// The events are the catalog's affair: it may be of another crate.
fn registration(model: &Model, this: &Type) -> TokenStream {
    let Model { catalog, block, settings, .. } = model;
    let handle = block.trait_.as_ref().and_then(|(path, _)| handle(path));
    let mode = match handle {
        Some(handle) => quote!(__relaybus::InTransaction<#handle>),
        None => quote!(__relaybus::Directly),
    };
    let prefix = match &model.prefix {
        Some(prefix) => prefix.to_token_stream(),
        None => last_name(this).to_token_stream(),
    };
    let options = settings.options();
    let handles = handle.map_or_else(|| quote!(()), |handle| quote!((#handle, ())));
    let constants = quote_spanned! {located(catalog)=>
        const __RELAYBUS_COUNT: __relaybus::usize = <#catalog as __relaybus::Catalog>::EVENTS.len();
        const __RELAYBUS_IDS: &[__relaybus::CatalogId; __RELAYBUS_COUNT] =
            &__relaybus::ids(#prefix, <#catalog as __relaybus::Catalog>::EVENTS);
        const __RELAYBUS_ENTRIES: &[__relaybus::Entry; __RELAYBUS_COUNT] = &__relaybus::entries(
            __RELAYBUS_IDS,
            <#catalog as __relaybus::HandledBy<#this, #mode>>::ENTRIES,
            #options,
            __relaybus::core::concat!(__relaybus::core::file!(), ":", __relaybus::core::line!()),
        );
    };
    let (declared, owner) = owner(block, model.companion.as_ref());
    let items = quote! {
        #constants
        #[automatically_derived]
        impl __relaybus::Consumers for #owner {
            type Handles = #handles;
            const ENTRIES: &'static [__relaybus::Entry] = __RELAYBUS_ENTRIES;
        }
        __relaybus::inventory::submit! { __relaybus::EntryGroup(__RELAYBUS_ENTRIES) }
    };
    let items = in_const(model, &items);
    quote!(#declared #items)
}

/// What keeps other code from failing too after an error: a type without handlers.
fn inert(model: &Model) -> TokenStream {
    let (declared, owner) = owner(&model.block, model.companion.as_ref());
    let items = in_const(model, &list(&owner, &[], &[]));
    quote!(#declared #items)
}

fn in_const(model: &Model, items: &TokenStream) -> TokenStream {
    let cfgs: Vec<_> = model.block.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
    krate::in_const(&model.krate, &cfgs, items)
}

fn last_name(this: &Type) -> String {
    match this {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.unraw().to_string()),
        _ => None,
    }
    .unwrap_or_default()
}
