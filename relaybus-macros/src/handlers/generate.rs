//! Generates the value: a list whose family of stores is that of the bus which takes it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use super::parse::Model;

/// ```text
/// { let mut list = HandlerList::new(); list.add::<(ship)>(); list.add::<(billing::record)>(); list }
/// ```
///
/// One statement a handler, so that one which does not fit is reported alone and at its path.
pub(crate) fn list(model: &Model) -> TokenStream {
    let Model { krate, handlers } = model;
    if handlers.is_empty() {
        return quote!(#krate::__private::HandlerList::new());
    }
    let list = Ident::new("list", Span::mixed_site());
    let adds = handlers.iter().map(|handler| {
        let at = handler.path.segments.last().map_or_else(Span::call_site, |segment| segment.ident.span());
        let mut list = list.clone();
        list.set_span(list.span().located_at(at));
        // In parentheses a path can only be a type: a function is then called a function in the compiler's message.
        quote_spanned!(Span::call_site().located_at(at)=> #list.add::<(#handler)>();)
    });
    quote!({
        let mut #list = #krate::__private::HandlerList::new();
        #(#adds)*
        #list
    })
}
