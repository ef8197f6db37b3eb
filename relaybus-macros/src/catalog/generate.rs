//! Generates the catalog: its constants, its decoding, and what ties it to its events and handlers.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use super::parse::{Event, Model};
use super::traits::{Form, method_ident, method_of, shown, traits};
use crate::krate;

/// ```text
/// pub trait OrderEventsHandlers { .. }                       // and its three relatives, see `traits`
/// impl Consumable for OrderEvents { .. }                     // decodes by event type
/// impl Catalog for OrderEvents { const EVENTS: &'static [EventMeta] = &[..]; .. }
/// impl MemberOf<OrderEvents> for OrderPlaced {}              // for each event, with From<OrderPlaced>
/// impl<T: OrderEventsHandlers> HandledBy<T> for OrderEvents { const ENTRIES: &'static [CatalogEntry] = &[..]; }
/// ```
pub(crate) fn catalog(model: &Model) -> TokenStream {
    let (plain, transactional) = (traits(model, Form::Plain), traits(model, Form::Transactional));
    let cfgs: Vec<_> = model.item.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
    let parts = [
        consumable(model),
        constants(model),
        members(model),
        handled(model),
        part_of(model),
        described(model),
        checks(model),
    ];
    let items = krate::in_const(&model.krate, &cfgs, &parts.into_iter().collect());
    quote!(#plain #transactional #items)
}

fn located(tokens: &impl Spanned) -> Span {
    Span::call_site().located_at(tokens.span())
}

/// What is generated for each event, under its `cfg`s.
fn each(model: &Model, make: impl Fn(&Event) -> TokenStream) -> TokenStream {
    let one = |event: &Event| {
        let (cfgs, made) = (&event.cfgs, make(event));
        quote!(#(#cfgs)* #made)
    };
    model.events.iter().map(one).collect()
}

fn name_of(model: &Model) -> TokenStream {
    model
        .name
        .as_ref()
        .map_or_else(|| model.item.ident.unraw().to_string().into_token_stream(), ToTokens::to_token_stream)
}

fn consumable(model: &Model) -> TokenStream {
    let (catalog, name) = (&model.item.ident, name_of(model));
    let types = each(model, |event| {
        let ty = &event.ty;
        quote!(__relaybus::HashedType::member::<Self, #ty>(),)
    });
    let decodes = each(model, |event| {
        let Event { ty, variant, .. } = event;
        quote! {
            if let __relaybus::Option::Some(event) =
                __relaybus::decode_as::<Self, #ty>(envelope, Self::#variant)?
            {
                return __relaybus::Outcome::Ok(event);
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl __relaybus::Consumable for #catalog {
            const SHOWN: &'static __relaybus::str = #name;
            const TYPES: &'static [__relaybus::HashedType] = &[#types];
            fn decode_from(
                envelope: &__relaybus::Envelope<__relaybus::RawPayload>,
            ) -> __relaybus::Result<__relaybus::Envelope<Self>> {
                #decodes
                __relaybus::Outcome::Err(__relaybus::not_in_catalog::<Self>(envelope))
            }
        }
    }
}

fn constants(model: &Model) -> TokenStream {
    let (catalog, name) = (&model.item.ident, name_of(model));
    let metas = each(model, |event| {
        let Event { ty, variant, .. } = event;
        let (name, spelled, method) = (variant.unraw().to_string(), shown(ty), method_of(variant));
        let wire = match &event.wire {
            Some(wire) => quote!(__relaybus::Option::Some(#wire)),
            None => quote!(__relaybus::Option::None),
        };
        quote!(__relaybus::EventMeta::of::<Self, #ty>(#name, #spelled, #method, #wire),)
    });
    let arms = each(model, |event| {
        let variant = &event.variant;
        quote!(Self::#variant(event) => __relaybus::add_member::<Self, _>(batch, event),)
    });
    let rest = model.is_partial.then(|| quote!(_ => {}));
    let body = if model.item.variants.is_empty() { quote!(match *self {}) } else { quote!(match self { #arms #rest }) };
    quote! {
        #[automatically_derived]
        impl __relaybus::Catalog for #catalog {
            const NAME: &'static __relaybus::str = #name;
            const EVENTS: &'static [__relaybus::EventMeta] = &[#metas];
            fn add_to(&self, batch: &mut __relaybus::EventBatch) {
                #body
            }
        }
    }
}

fn members(model: &Model) -> TokenStream {
    let catalog = &model.item.ident;
    model
        .events
        .iter()
        .map(|event| {
            let Event { cfgs, variant, ty, .. } = event;
            quote! {
                #(#cfgs)*
                #[automatically_derived]
                impl __relaybus::MemberOf<#catalog> for #ty {}
                #(#cfgs)*
                #[automatically_derived]
                impl __relaybus::From<#ty> for #catalog {
                    fn from(event: #ty) -> Self {
                        Self::#variant(event)
                    }
                }
            }
        })
        .collect()
}

fn handled(model: &Model) -> TokenStream {
    let catalog = &model.item.ident;
    let (plain, transactional) = (Form::Plain.name(model), Form::Transactional.name(model));
    let direct = each(model, |event| {
        let (ty, method, name) = (&event.ty, method_ident(event), method_of(&event.variant));
        quote! {
            __relaybus::CatalogEntry::of::<Self, #ty, __T>(#name, |parts| {
                let (this, event, context) = __relaybus::arguments::<__T, #ty>(parts)?;
                let handled = <__T as #plain>::#method(this, event, context);
                __relaybus::Outcome::Ok(__relaybus::boxed::<__relaybus::HandlerResult, _>(handled))
            }),
        }
    });
    let in_transaction = each(model, |event| {
        let (ty, method, name) = (&event.ty, method_ident(event), method_of(&event.variant));
        quote! {
            __relaybus::CatalogEntry::transactional::<Self, #ty, __T, __H>(#name, |parts| {
                let (this, event, tx, context) = __relaybus::arguments_in::<__T, #ty, __H>(parts)?;
                let handled = <__T as #transactional<__H>>::#method(this, event, tx, context);
                __relaybus::Outcome::Ok(__relaybus::boxed::<__relaybus::HandlerResult, _>(handled))
            }),
        }
    });
    quote! {
        #[automatically_derived]
        impl<__T: #plain> __relaybus::HandledBy<__T> for #catalog {
            const ENTRIES: &'static [__relaybus::CatalogEntry] = &[#direct];
        }
        #[automatically_derived]
        impl<__T: #transactional<__H>, __H: __relaybus::Send + 'static>
            __relaybus::HandledBy<__T, __relaybus::InTransaction<__H>> for #catalog
        {
            const ENTRIES: &'static [__relaybus::CatalogEntry] = &[#in_transaction];
        }
    }
}

/// What makes `of = OrderEvents` a list of events of that catalog.
fn part_of(model: &Model) -> TokenStream {
    let Some(whole) = &model.of else { return TokenStream::new() };
    let catalog = &model.item.ident;
    let types = each(model, |event| {
        let ty = &event.ty;
        quote!(__relaybus::HashedType::member::<#whole, #ty>(),)
    });
    quote! {
        #[automatically_derived]
        impl __relaybus::SubsetOf<#whole> for #catalog {
            const TYPES: &'static [__relaybus::HashedType] = &[#types];
        }
        #[automatically_derived]
        impl<__E: __relaybus::MemberOf<#catalog>> __relaybus::Includes<__E, __relaybus::ByCatalog> for #catalog {}
    }
}

/// What `schema` asks for: a schema for each event, whose type is where the compiler points when it has none.
fn described(model: &Model) -> TokenStream {
    if !model.schema {
        return TokenStream::new();
    }
    let catalog = &model.item.ident;
    let schemas = each(model, |event| {
        let ty = &event.ty;
        quote!(__relaybus::EventSchema::of::<Self, #ty>(),)
    });
    quote! {
        #[automatically_derived]
        impl __relaybus::DescribedCatalog for #catalog {
            const SCHEMAS: &'static [__relaybus::EventSchema] = &[#schemas];
        }
    }
}

/// The checks that need the event types, each at what the user wrote.
fn checks(model: &Model) -> TokenStream {
    let catalog = &model.item.ident;
    let checks: TokenStream = model
        .events
        .iter()
        .map(|event| {
            let (cfgs, name) = (&event.cfgs, event.variant.unraw().to_string());
            let distinct = quote_spanned!(located(&event.ty)=> 
                const _: () = __relaybus::distinct::<#catalog, _>(#name, &__RELAYBUS_TABLE););
            let wire = event.wire.as_ref().map(|wire| {
                let check =
                    quote_spanned!(located(wire)=> const _: () = __relaybus::distinct_wire::<#catalog>(#name, #wire););
                quote!(#(#cfgs)* #check)
            });
            quote!(#(#cfgs)* #distinct #wire)
        })
        .collect();
    quote! {
        const __RELAYBUS_TABLE: __relaybus::CatalogTable<{ __relaybus::catalog_slots::<#catalog>() }> =
            __relaybus::CatalogTable::of::<#catalog>();
        #checks
    }
}
