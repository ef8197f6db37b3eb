//! Generates the companion of a consumer and its implementation of `Handler`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use super::parse::{Function, Model};
use super::settings::Settings;
use crate::krate;
use crate::rewrite;

/// What stands for one handler in generated code.
pub(crate) struct HandlerType<'m> {
    pub(crate) function: &'m Function,
    pub(crate) event: &'m Type,
    pub(crate) settings: &'m Settings,
    /// The type whose method it is.
    pub(crate) this: Option<&'m Type>,
}

/// ```text
/// enum ship {}
/// enum __relaybus_ship {}
/// impl Handler for __relaybus_ship { .. }
/// inventory::submit! { Entry::of::<__relaybus_ship>() }
/// impl Consumers for ship { type Handles = (PgConnection, ()); const ENTRIES: &'static [Entry] = &[..]; }
/// ```
///
/// `ship`, as visible as the function, implements only what does not name the event, which may be less visible.
pub(crate) fn consumer(model: &Model, event: &Type) -> TokenStream {
    let Model { function, settings, krate, .. } = model;
    let companion = companion(model);
    let handler = HandlerType { function, event, settings, this: None };
    let implementation = implementation(&handler);
    let list = list(&companion, &[entry(function)], &handles(&handler));
    let declaration = declaration(model, &companion);
    let items = krate::in_const(krate, &function.cfgs(), &quote!(#implementation #list));
    quote!(#declaration #items)
}

/// What keeps other code from failing too after an error: a companion without a handler.
pub(crate) fn inert(model: &Model) -> TokenStream {
    let companion = companion(model);
    let declaration = declaration(model, &companion);
    let items = krate::in_const(&model.krate, &model.function.cfgs(), &list(&companion, &[], &[]));
    quote!(#declaration #items)
}

/// The name of the type beside the function. Its span makes lints treat it as code of a macro, wherever it is shown.
fn companion(model: &Model) -> Ident {
    let mut companion = model.companion.as_ref().unwrap_or(&model.function.signature.ident).clone();
    companion.set_span(Span::call_site().located_at(companion.span()));
    companion
}

fn declaration(model: &Model, companion: &Ident) -> TokenStream {
    let (cfgs, visibility) = (model.function.cfgs(), &model.function.visibility);
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #visibility enum #companion {}
    }
}

/// The type that implements `Handler`.
fn hidden(function: &Function) -> Ident {
    let name = &function.signature.ident;
    format_ident!("__relaybus_{}", name.unraw(), span = Span::call_site().located_at(name.span()))
}

/// The entry of a function whose implementation is in scope.
pub(crate) fn entry(function: &Function) -> TokenStream {
    let handler = hidden(function);
    quote!(__relaybus::Entry::of::<#handler>())
}

/// The implementation of `Handler`, its check in a constant and its registration.
pub(crate) fn implementation(handler: &HandlerType<'_>) -> TokenStream {
    let HandlerType { function, event, settings, .. } = handler;
    let name = hidden(function);
    let id = id(handler);
    let needs = needs(handler);
    let transactional = settings.transactional;
    let options = settings.options();
    let call = call(handler);
    let entry = entry(function);
    let check = quote_spanned!(name.span()=> const _: () = __relaybus::check::<#name>(););
    let cfgs = function.cfgs();
    quote! {
        #(#cfgs)*
        enum #name {}
        #(#cfgs)*
        #[automatically_derived]
        impl __relaybus::Handler for #name {
            type Event = #event;
            const ID: &'static __relaybus::str = #id;
            const NEEDS: &'static [__relaybus::Needs] = &[#needs];
            const TRANSACTIONAL: __relaybus::bool = #transactional;
            const OPTIONS: __relaybus::ConsumerOptions = #options;
            const LOCATION: &'static __relaybus::str =
                __relaybus::core::concat!(__relaybus::core::file!(), ":", __relaybus::core::line!());
            #call
        }
        #(#cfgs)*
        #check
        #(#cfgs)*
        __relaybus::inventory::submit! { #entry }
    }
}

/// The id of the attribute, or the path of the function in its crate.
fn id(handler: &HandlerType<'_>) -> TokenStream {
    if let Some(id) = &handler.settings.id {
        return id.into_token_stream();
    }
    let mut path = String::from("::");
    if let Some(this) = handler.this {
        path.extend(this.to_token_stream().to_string().replace("r#", "").chars().filter(|c| !c.is_whitespace()));
        path.push_str("::");
    }
    path.push_str(&handler.function.signature.ident.unraw().to_string());
    quote!(__relaybus::core::concat!(__relaybus::core::module_path!(), #path))
}

fn needs(handler: &HandlerType<'_>) -> TokenStream {
    let this = handler.this.map(|this| quote!(__relaybus::Needs::Instance(__relaybus::TypeRef::of::<#this>()),));
    let arguments = handler.function.arguments().map(|(cfgs, ty)| {
        let extractor = extractor(handler, ty);
        quote!(#(#cfgs)* #extractor::NEEDS)
    });
    quote!(#this #(#arguments),*)
}

/// Takes the arguments, then calls the function: no state machine of its own beside the function's.
fn call(handler: &HandlerType<'_>) -> TokenStream {
    let name = &handler.function.signature.ident;
    let at = Span::call_site().located_at(name.span());
    let (mut takes, mut passes) = (Vec::new(), Vec::new());
    let function = match handler.this {
        Some(this) => {
            takes.push(quote!(let __relaybus_this = __relaybus::Parts::state_ref::<#this>(__relaybus_parts)?;));
            passes.push(quote!(__relaybus_this));
            quote!(<#this>::#name)
        }
        None => name.to_token_stream(),
    };
    for (index, (cfgs, ty)) in handler.function.arguments().enumerate() {
        let argument = format_ident!("__relaybus_{index}");
        let extractor = extractor(handler, ty);
        takes.push(quote!(#(#cfgs)* let #argument = #extractor::from_delivery(__relaybus_parts)?;));
        passes.push(quote!(#(#cfgs)* #argument));
    }
    let parts = if takes.is_empty() { quote!(_) } else { quote!(__relaybus_parts) };
    let output = output(handler);
    let future = quote_spanned!(at=> __relaybus::boxed::<#output, _>(#function(#(#passes),*)));
    quote! {
        fn call<'p>(
            #parts: &mut __relaybus::Parts<'p>,
        ) -> __relaybus::Result<__relaybus::BoxFuture<'p, __relaybus::Result<()>>> {
            #(#takes)*
            __relaybus::Outcome::Ok(#future)
        }
    }
}

/// What makes an argument of type `ty`: the trait decides, by whatever name the type goes.
fn extractor(handler: &HandlerType<'_>, ty: &Type) -> TokenStream {
    let ty = inferred(handler, ty);
    quote_spanned!(Span::call_site().located_at(ty.span())=> <#ty as __relaybus::FromDelivery<'_, Self::Event, _>>)
}

fn output(handler: &HandlerType<'_>) -> TokenStream {
    match handler.function.output() {
        Some(output) => inferred(handler, output),
        None => quote!(()),
    }
}

/// The type where the function's own lifetimes are not declared.
fn inferred(handler: &HandlerType<'_>, ty: &Type) -> TokenStream {
    let names: Vec<_> =
        handler.function.signature.generics.lifetimes().map(|it| it.lifetime.ident.to_string()).collect();
    let ty = rewrite::lifetimes(ty, &|name| names.iter().any(|declared| declared == name).then_some("_"));
    match handler.this {
        Some(this) => rewrite::self_type(ty, &this.to_token_stream()),
        None => ty,
    }
}

/// The types of transaction handles that are spelled out. One inside an alias, behind another reference or under `cfg`
/// is compared with the store's when the bus starts.
pub(crate) fn handles(handler: &HandlerType<'_>) -> Vec<TokenStream> {
    if !handler.settings.transactional {
        return Vec::new();
    }
    let spelled = handler.function.arguments().filter_map(|(cfgs, ty)| match rewrite::ungrouped(ty) {
        Type::Reference(reference) if reference.mutability.is_some() && cfgs.is_empty() => Some(&*reference.elem),
        _ => None,
    });
    spelled.filter(|ty| !rewrite::has_reference(ty)).map(|ty| rewrite::lifetimes(ty, &|_| Some("static"))).collect()
}

/// What `handlers![..]` finds under a name.
pub(crate) fn list(owner: &impl ToTokens, entries: &[TokenStream], handles: &[TokenStream]) -> TokenStream {
    let handles = handles.iter().rfold(quote!(()), |rest, handle| quote!((#handle, #rest)));
    quote! {
        #[automatically_derived]
        impl __relaybus::Consumers for #owner {
            type Handles = #handles;
            const ENTRIES: &'static [__relaybus::Entry] = &[#(#entries),*];
        }
    }
}
