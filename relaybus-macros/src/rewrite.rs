//! Rewrites the tokens of a user's type for a place where its lifetimes and its `Self` mean nothing.
//!
//! On tokens rather than on a syntax tree: it keeps every span and needs no visitor of syn, which is slow to compile.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Type;

/// The type with each lifetime that `replace` names a new name for; names have no apostrophe.
pub(crate) fn lifetimes(tokens: impl ToTokens, replace: &dyn Fn(&str) -> Option<&'static str>) -> TokenStream {
    let mut after_apostrophe = false;
    map(tokens.into_token_stream(), &mut |tree| {
        let follows =
            std::mem::replace(&mut after_apostrophe, matches!(&tree, TokenTree::Punct(p) if p.as_char() == '\''));
        match &tree {
            TokenTree::Ident(ident) if follows => match replace(&ident.to_string()) {
                Some(name) => TokenTree::Ident(Ident::new(name, ident.span())).into(),
                None => tree.into(),
            },
            _ => tree.into(),
        }
    })
}

/// The type with `Self` replaced, at the place of `Self`.
pub(crate) fn self_type(tokens: impl ToTokens, replacement: &TokenStream) -> TokenStream {
    map(tokens.into_token_stream(), &mut |tree| match &tree {
        TokenTree::Ident(ident) if ident == "Self" => map(replacement.clone(), &mut |mut tree| {
            tree.set_span(tree.span().located_at(ident.span()));
            tree.into()
        }),
        _ => tree.into(),
    })
}

/// Where `impl Trait` is written in the type.
pub(crate) fn find_impl(tokens: impl ToTokens) -> Option<Span> {
    let mut found = None;
    map(tokens.into_token_stream(), &mut |tree| {
        if let TokenTree::Ident(ident) = &tree
            && ident == "impl"
        {
            found = found.or(Some(ident.span()));
        }
        tree.into()
    });
    found
}

/// Whether the type borrows without a named lifetime.
pub(crate) fn has_reference(tokens: impl ToTokens) -> bool {
    let mut found = false;
    map(tokens.into_token_stream(), &mut |tree| {
        found |= matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '&');
        tree.into()
    });
    found
}

/// A type out of parentheses and of the invisible groups that macros by example put around it.
pub(crate) fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(paren) => ungrouped(&paren.elem),
        ty => ty,
    }
}

fn map(tokens: TokenStream, change: &mut dyn FnMut(TokenTree) -> TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|tree| match tree {
            TokenTree::Group(group) => {
                let mut mapped = Group::new(group.delimiter(), map(group.stream(), change));
                if group.delimiter() != Delimiter::None {
                    mapped.set_span(group.span());
                }
                TokenStream::from(TokenTree::Group(mapped))
            }
            tree => change(tree),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn only_declared_lifetimes_change() {
        let replace = |name: &str| (name == "a").then_some("_");
        let ty = quote!(&'a mut Pair<'a, Box<dyn for<'b> Fn(&'b str) -> &'static str>>);
        let expected = quote!(&'_ mut Pair<'_, Box<dyn for<'b> Fn(&'b str) -> &'static str>>);
        assert_eq!(lifetimes(ty, &replace).to_string(), expected.to_string());
    }

    #[test]
    fn self_is_replaced_in_depth() {
        let shipping = quote!(Shipping<u8>);
        let replaced = self_type(quote!(State<(Self, [Self; 2])>), &shipping);
        assert_eq!(replaced.to_string(), quote!(State<(Shipping<u8>, [Shipping<u8>; 2])>).to_string());
    }

    #[test]
    fn finds_impl_and_references() {
        assert!(find_impl(quote!(Vec<(impl Copy, u8)>)).is_some());
        assert!(find_impl(quote!(Simple)).is_none());
        assert!(has_reference(quote!(Vec<&u8>)) && !has_reference(quote!(Vec<u8>)));
    }
}
