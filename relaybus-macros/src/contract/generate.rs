//! Generates the module: a type with the contract as a constant, and the checks that the compiler evaluates.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Path;
use syn::ext::IdentExt;

use super::parse::{Model, Part};
use crate::krate;

/// ```text
/// enum shipping {}
/// const CONSUMES: &[ContractPart] = &[ContractPart::all::<OrderEvents>()];
/// const HANDLED: TypeTable<{ .. }> = TypeTable::handled(HANDLERS);
/// const CONSUMED: TypeTable<{ .. }> = TypeTable::consumed(CONSUMES);
/// const _: () = consumes("shipping", &CONSUMES[0], &HANDLED);                 // at `OrderEvents`
/// const _: () = belongs("ship", <ship as Consumers>::ENTRIES, &CONSUMED);     // at `ship`
/// pub enum Handles {}                                                         // no name of a private handler in public
/// impl<F: Family> LentBy<F> for Handles where <ship as Consumers>::Handles: LentBy<F> {}
/// impl Module for shipping { type Handles = Handles; const CONTRACT: Contract = Contract::new(..); }
/// inventory::submit! { <shipping as Module>::CONTRACT }
/// ```
pub(crate) fn module(model: &Model) -> TokenStream {
    let Some(name) = &model.name else { return TokenStream::new() };
    let companion = companion(name);
    let shown = name.unraw().to_string();
    let handlers = &model.handlers;
    let (consumes, produces) = (parts(&model.consumes), parts(&model.produces));
    let checks: TokenStream = checks(model, &shown);
    let items = quote! {
        const __RELAYBUS_CONSUMES: &[__relaybus::ContractPart] = &[#consumes];
        const __RELAYBUS_HANDLERS: &[&[__relaybus::Entry]] = &[
            #(<(#handlers) as __relaybus::Consumers>::ENTRIES),*
        ];
        const __RELAYBUS_HANDLED: __relaybus::TypeTable<{ __relaybus::handled_slots(__RELAYBUS_HANDLERS) }> =
            __relaybus::TypeTable::handled(__RELAYBUS_HANDLERS);
        const __RELAYBUS_CONSUMED: __relaybus::TypeTable<{ __relaybus::consumed_slots(__RELAYBUS_CONSUMES) }> =
            __relaybus::TypeTable::consumed(__RELAYBUS_CONSUMES);
        #checks
        pub enum __RelaybusHandles {}
        #[automatically_derived]
        impl<__F: __relaybus::Family> __relaybus::LentBy<__F> for __RelaybusHandles
        where
            #(<(#handlers) as __relaybus::Consumers>::Handles: __relaybus::LentBy<__F>,)*
        {}
        #[automatically_derived]
        impl __relaybus::Module for #companion {
            type Handles = __RelaybusHandles;
            const CONTRACT: __relaybus::Contract = __relaybus::Contract::new(
                #shown,
                __RELAYBUS_CONSUMES,
                &[#produces],
                __RELAYBUS_HANDLERS,
                __relaybus::core::concat!(__relaybus::core::file!(), ":", __relaybus::core::line!()),
            );
        }
        __relaybus::inventory::submit! { <#companion as __relaybus::Module>::CONTRACT }
    };
    let declaration = declaration(model, &companion);
    let items = krate::uses_in_const(&model.krate, &items);
    quote!(#declaration #items)
}

/// What keeps other code from failing too after an error: a module without a contract.
pub(crate) fn inert(model: &Model) -> TokenStream {
    let Some(name) = &model.name else { return TokenStream::new() };
    let companion = companion(name);
    let items = quote! {
        #[automatically_derived]
        impl __relaybus::Module for #companion {
            type Handles = ();
            const CONTRACT: __relaybus::Contract = __relaybus::Contract::new("", &[], &[], &[], "");
        }
    };
    let declaration = declaration(model, &companion);
    let items = krate::uses_in_const(&model.krate, &items);
    quote!(#declaration #items)
}

/// The span makes lints treat it as code of a macro, wherever it is shown.
fn companion(name: &Ident) -> Ident {
    let mut companion = name.clone();
    companion.set_span(Span::call_site().located_at(name.span()));
    companion
}

fn declaration(model: &Model, companion: &Ident) -> TokenStream {
    let visibility = &model.visibility;
    let about = "A module with a contract.";
    quote! {
        #[doc = #about]
        #visibility enum #companion {}
    }
}

fn parts(parts: &[Part]) -> TokenStream {
    let part = |part: &Part| {
        let catalog = &part.catalog;
        match &part.only {
            None => quote!(__relaybus::ContractPart::all::<#catalog>(),),
            Some(only) => {
                let names = only.iter().map(|name| name.unraw().to_string());
                quote!(__relaybus::ContractPart::only::<#catalog>(&[#(#names),*]),)
            }
        }
    };
    parts.iter().map(part).collect()
}

/// One constant a rule and item, at the item.
fn checks(model: &Model, shown: &str) -> TokenStream {
    let mut checks = TokenStream::new();
    for Part { catalog, only } in model.consumes.iter().chain(&model.produces) {
        // The compiler knows the variants, and proposes the one that was meant.
        let names = only.iter().flatten();
        checks.extend(quote!(#(const _: () = { let _ = #catalog::#names; };)*));
    }
    for (index, part) in model.consumes.iter().enumerate() {
        checks.extend(quote_spanned! {at(&part.catalog)=>
            const _: () = __relaybus::consumes(#shown, &__RELAYBUS_CONSUMES[#index], &__RELAYBUS_HANDLED);
        });
    }
    for (index, handler) in model.handlers.iter().enumerate() {
        let written = handler.to_token_stream().to_string().replace(' ', "");
        checks.extend(quote_spanned! {at(&handler.path)=>
            const _: () = __relaybus::belongs(#written, __RELAYBUS_HANDLERS[#index], &__RELAYBUS_CONSUMED);
        });
    }
    checks
}

/// The place of a path: its last name.
fn at(path: &Path) -> Span {
    let last = path.segments.last().map_or_else(Span::call_site, |segment| segment.ident.span());
    Span::call_site().located_at(last)
}
