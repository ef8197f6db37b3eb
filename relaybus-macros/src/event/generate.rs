//! Generates the implementation of `Event`.

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, Generics, Member, parse_quote};

use super::parse::{Key, Model};
use crate::krate;

/// ```text
/// impl Event for OrderPlaced {
///     const TYPE: EventType = EventType::from_static("order.placed.v1");
///     const KEY: Option<&'static str> = Some("order_id");
///     fn ordering_key(&self) -> Result<Option<OrderingKey>> { key_of(&self.order_id) }
///     fn validate(&self) -> Result<(), BoxError> { validated(check_order(self)) }
/// }
/// ```
pub(crate) fn implementation(model: &Model) -> TokenStream {
    let event_type = &model.event_type;
    let key = model.key.as_ref().map(ordering_key);
    let validate = model.validate.as_ref().map(|function| {
        let (applied, _) = applied(function);
        let call = quote!(__relaybus::validated(#applied));
        quote! {
            fn validate(&self) -> __relaybus::Outcome<(), __relaybus::BoxError> {
                #call
            }
        }
    });
    implement(
        model,
        &quote! {
            const TYPE: __relaybus::EventType = __relaybus::EventType::from_static(#event_type);
            #key
            #validate
        },
    )
}

/// What keeps other code from failing too after an error: an implementation that does nothing.
pub(crate) fn inert(model: &Model) -> TokenStream {
    // Neither can be deserialized, which the compiler would report on top.
    let union = matches!(model.input.data, Data::Union(_));
    if union || model.input.generics.lifetimes().next().is_some() {
        return TokenStream::new();
    }
    implement(
        model,
        &quote! {
            const TYPE: __relaybus::EventType = __relaybus::EventType::from_static("invalid");
        },
    )
}

fn implement(model: &Model, items: &TokenStream) -> TokenStream {
    let name = &model.input.ident;
    let generics = bounded(&model.input.generics);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    krate::in_const(
        &model.krate,
        &[],
        &quote! {
            #[automatically_derived]
            impl #impl_generics __relaybus::Event for #name #type_generics #where_clause {
                #items
            }
        },
    )
}

/// An event's type parameters are data of the event.
fn bounded(generics: &Generics) -> Generics {
    let mut generics = generics.clone();
    let parameters: Vec<_> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    if !parameters.is_empty() {
        let clause = generics.make_where_clause();
        for parameter in parameters {
            clause.predicates.push(parse_quote! {
                #parameter: __relaybus::serde::Serialize + __relaybus::serde::de::DeserializeOwned
                    + __relaybus::Send + __relaybus::Sync + 'static
            });
        }
    }
    generics
}

fn ordering_key(key: &Key) -> TokenStream {
    let (value, at) = match key {
        Key::Field(fields) => field(fields),
        Key::Function(function) => applied(function),
        Key::Closure(closure) => applied(closure),
    };
    let call = {
        let value = quote_spanned!(at=> &#value);
        quote!(__relaybus::key_of(#value))
    };
    let written = written(key);
    quote! {
        const KEY: __relaybus::Option<&'static __relaybus::str> = __relaybus::Option::Some(#written);
        fn ordering_key(&self) -> __relaybus::Result<__relaybus::Option<__relaybus::OrderingKey>> {
            #call
        }
    }
}

/// The key as it is written, without the spaces that no word needs: those differ between compilers.
fn written(key: &Key) -> String {
    let tokens = match key {
        Key::Field(fields) => quote!(#(#fields).*),
        Key::Function(function) => function.to_token_stream(),
        Key::Closure(closure) => closure.to_token_stream(),
    };
    let mut written = String::new();
    for part in tokens.to_string().split_whitespace() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        if written.ends_with(is_word) && part.starts_with(is_word) {
            written.push(' ');
        }
        written.push_str(part);
    }
    written
}

/// `self.customer.id`, where the user wrote `customer.id`: a type that cannot be a key is reported there.
fn field(fields: &[Member]) -> (TokenStream, Span) {
    let at = located(fields.first().map_or_else(Span::call_site, Spanned::span));
    let fields = fields.iter().cloned().map(|mut field| {
        match &mut field {
            Member::Named(name) => name.set_span(located(name.span())),
            Member::Unnamed(index) => index.span = located(index.span),
        }
        field
    });
    (quote_spanned!(at=> self #(.#fields)*), at)
}

/// `apply(self, function)`, from the first to the last token of what the user wrote: a function of another shape, or a
/// result that cannot be used, is reported there.
fn applied(function: &impl ToTokens) -> (TokenStream, Span) {
    let function = function.to_token_stream();
    let mut spans = function.clone().into_iter().map(|tree| located(tree.span()));
    let first = spans.next().unwrap_or_else(Span::call_site);
    let this = quote_spanned!(first=> self);
    let mut arguments = Group::new(Delimiter::Parenthesis, quote!(#this, #function));
    arguments.set_span(spans.last().unwrap_or(first));
    (quote_spanned!(first=> __relaybus::apply #arguments), first)
}

/// A place in the user's code for generated tokens, which resolve as generated code: the user's own may come out of a
/// macro by example, where `self` would be another one.
fn located(span: Span) -> Span {
    Span::call_site().located_at(span)
}
