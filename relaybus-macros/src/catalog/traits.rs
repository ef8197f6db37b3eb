//! Generates the handler traits of a catalog: one method an event, in a transaction or not, each with its `dyn` twin.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;
use syn::ext::IdentExt;

use super::parse::{Event, Model};

/// Whether the methods take a transaction handle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Transactional,
}

impl Form {
    /// The name of the trait; its span makes lints treat it as code of a macro, wherever it is shown.
    pub(crate) fn name(self, model: &Model) -> Ident {
        self.named(model, "")
    }

    fn twin(self, model: &Model) -> Ident {
        self.named(model, "Dyn")
    }

    fn named(self, model: &Model, before: &str) -> Ident {
        let after = if self == Self::Plain { "Handlers" } else { "TxHandlers" };
        let name = &model.item.ident;
        format_ident!("{before}{}{after}", name.unraw(), span = located(name))
    }

    /// The trait's own parameters, with and without their bounds.
    fn generics(self, p: &TokenStream, handle: &Ident) -> (TokenStream, TokenStream) {
        match self {
            Self::Plain => (TokenStream::new(), TokenStream::new()),
            Self::Transactional => (quote!(#handle: #p::Send + 'static), quote!(<#handle>)),
        }
    }
}

/// The method that handles the event of a variant: `on_order_placed`.
pub(crate) fn method_of(variant: &Ident) -> String {
    let mut method = String::from("on");
    let name = variant.unraw().to_string();
    let letters: Vec<char> = name.chars().collect();
    for (i, letter) in letters.iter().enumerate() {
        let after_lower = i > 0 && !letters[i - 1].is_uppercase();
        let before_lower = letters.get(i + 1).is_some_and(|next| next.is_lowercase());
        if i == 0 || (letter.is_uppercase() && letters[i - 1] != '_' && (after_lower || before_lower)) {
            method.push('_');
        }
        method.extend(letter.to_lowercase());
    }
    method
}

/// The method's name at the place of its variant, where the compiler points when it is missing.
pub(crate) fn method_ident(event: &Event) -> Ident {
    Ident::new(&method_of(&event.variant), located(&event.variant))
}

fn twin_ident(event: &Event) -> Ident {
    format_ident!("dyn_{}", method_of(&event.variant), span = located(&event.variant))
}

fn located(name: &Ident) -> Span {
    Span::call_site().located_at(name.span())
}

/// ```text
/// pub trait OrderEventsHandlers: Send + Sync + 'static { fn on_order_placed(&self, ..) -> impl Future<..> + Send; }
/// pub trait DynOrderEventsHandlers: Send + Sync + 'static { fn dyn_on_order_placed<'h>(&'h self, ..) -> BoxFuture<'h, ..>; }
/// impl<T: OrderEventsHandlers> DynOrderEventsHandlers for T { .. }
/// impl OrderEventsHandlers for Arc<dyn DynOrderEventsHandlers> { .. }
/// ```
pub(crate) fn traits(model: &Model, form: Form) -> TokenStream {
    let krate = &model.krate;
    let p = quote!(#krate::__private);
    let (name, twin) = (form.name(model), form.twin(model));
    let handle = handle_name(model);
    let (bounded, generics) = form.generics(&p, &handle);
    let (visibility, item) = (&model.item.vis, &model.item.ident);
    let cfgs: Vec<_> = model.item.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect();
    let methods: Vec<Method<'_>> =
        model.events.iter().map(|event| Method { event, form, p: &p, handle: &handle }).collect();
    let (mut declared, mut boxed) = (TokenStream::new(), TokenStream::new());
    let (mut forwarded, mut unboxed) = (TokenStream::new(), TokenStream::new());
    for method in &methods {
        declared.extend(method.declared());
        boxed.extend(method.declared_boxed());
        forwarded.extend(method.boxed(&name));
        unboxed.extend(method.unboxed());
    }
    let in_transaction = if form == Form::Plain { "" } else { ", each in a transaction of the store" };
    let about = format!("Handlers of the events of [`{item}`]: one method an event{in_transaction}.");
    let about_twin = format!("[`{name}`] for use as `dyn`: an `Arc` of it is a [`{name}`] again.");
    let comma = if bounded.is_empty() { quote!() } else { quote!(,) };
    quote! {
        #(#cfgs)*
        #[allow(deprecated, reason = "it is declared, not used")]
        #[doc = #about]
        #visibility trait #name<#bounded>: #p::Send + #p::Sync + 'static {
            #declared
        }
        #(#cfgs)*
        #[allow(deprecated, reason = "it is declared, not used")]
        #[doc = #about_twin]
        #visibility trait #twin<#bounded>: #p::Send + #p::Sync + 'static {
            #boxed
        }
        #(#cfgs)*
        #[allow(deprecated, reason = "it is declared, not used")]
        #[automatically_derived]
        impl<#bounded #comma __T: #name #generics> #twin #generics for __T {
            #forwarded
        }
        #(#cfgs)*
        #[allow(deprecated, reason = "it is declared, not used")]
        #[automatically_derived]
        impl<#bounded> #name #generics for #p::Arc<dyn #twin #generics> {
            #unboxed
        }
    }
}

/// The parameter for the transaction handle: `H`, unless an event is called that.
fn handle_name(model: &Model) -> Ident {
    fn has(tokens: TokenStream, name: &str) -> bool {
        tokens.into_iter().any(|tree| match tree {
            TokenTree::Group(group) => has(group.stream(), name),
            TokenTree::Ident(ident) => ident == name,
            TokenTree::Punct(_) | TokenTree::Literal(_) => false,
        })
    }
    let is_taken = model.events.iter().any(|event| has(event.ty.to_token_stream(), "H"));
    Ident::new(if is_taken { "__H" } else { "H" }, Span::call_site())
}

/// One method of the traits of one form.
struct Method<'m> {
    event: &'m Event,
    form: Form,
    p: &'m TokenStream,
    /// The parameter that is the transaction handle.
    handle: &'m Ident,
}

impl Method<'_> {
    fn at(&self) -> Span {
        located(&self.event.variant)
    }

    fn transaction(&self, lifetime: &TokenStream) -> (TokenStream, TokenStream) {
        let handle = self.handle;
        match self.form {
            Form::Plain => (TokenStream::new(), TokenStream::new()),
            Form::Transactional => (quote_spanned!(self.at()=> tx: &#lifetime mut #handle,), quote!(tx,)),
        }
    }

    fn arguments(&self, lifetime: &TokenStream) -> TokenStream {
        let (p, ty) = (self.p, &self.event.ty);
        let (tx, _) = self.transaction(lifetime);
        quote_spanned!(self.at()=> &#lifetime self, event: &#lifetime #p::Envelope<#ty>, #tx context: &#lifetime #p::HandlerContext)
    }

    fn passed(&self) -> TokenStream {
        let (_, tx) = self.transaction(&TokenStream::new());
        quote!(event, #tx context)
    }

    fn declared(&self) -> TokenStream {
        let (p, cfgs, name) = (self.p, &self.event.cfgs, method_ident(self.event));
        let arguments = self.arguments(&TokenStream::new());
        let about = format!("Handles [`{}`].", shown(&self.event.ty));
        // At the variant, which the compiler then shows beside an implementation without the method.
        let method = quote_spanned! {self.at()=>
            fn #name(#arguments) -> impl #p::Future<Output = #p::HandlerResult> + #p::Send;
        };
        quote! {
            #(#cfgs)*
            #[doc = #about]
            ///
            /// # Errors
            /// What makes the attempt fail.
            #method
        }
    }

    fn boxed_signature(&self) -> TokenStream {
        let (p, name) = (self.p, twin_ident(self.event));
        let arguments = self.arguments(&quote!('h));
        quote!(fn #name<'h>(#arguments) -> #p::BoxFuture<'h, #p::HandlerResult>)
    }

    fn declared_boxed(&self) -> TokenStream {
        let (cfgs, signature) = (&self.event.cfgs, self.boxed_signature());
        quote!(#(#cfgs)* #[doc(hidden)] #signature;)
    }

    fn boxed(&self, name: &Ident) -> TokenStream {
        let (p, cfgs, signature) = (self.p, &self.event.cfgs, self.boxed_signature());
        let (_, generics) = self.form.generics(p, self.handle);
        let (method, passed) = (method_ident(self.event), self.passed());
        quote! {
            #(#cfgs)*
            #signature {
                #p::Box::pin(<Self as #name #generics>::#method(self, #passed))
            }
        }
    }

    fn unboxed(&self) -> TokenStream {
        let (p, cfgs, name) = (self.p, &self.event.cfgs, method_ident(self.event));
        let (arguments, passed, twin) = (self.arguments(&TokenStream::new()), self.passed(), twin_ident(self.event));
        quote! {
            #(#cfgs)*
            async fn #name(#arguments) -> #p::HandlerResult {
                (**self).#twin(#passed).await
            }
        }
    }
}

/// A type as people write it.
pub(crate) fn shown(ty: &Type) -> String {
    let written = ty.to_token_stream().to_string();
    [(" :: ", "::"), (" < ", "<"), (" >", ">"), (" ,", ",")]
        .iter()
        .fold(written, |text, (spaced, tight)| text.replace(spaced, tight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_for_their_variants() {
        for (variant, method) in [
            ("OrderPlaced", "on_order_placed"),
            ("HTTPFailed", "on_http_failed"),
            ("V2Ready", "on_v2_ready"),
            ("Order_Placed", "on_order_placed"),
            ("A", "on_a"),
            ("UserID", "on_user_id"),
        ] {
            assert_eq!(method_of(&Ident::new(variant, Span::call_site())), method);
        }
        assert_eq!(method_of(&Ident::new_raw("type", Span::call_site())), "on_type");
    }

    #[test]
    fn types_are_shown_without_the_spaces_of_tokens() {
        let ty: Type = syn::parse_quote!(events::Changed<u32, Vec<u8>>);
        assert_eq!(shown(&ty), "events::Changed<u32, Vec<u8>>");
    }
}
