//! `#[allow_external_call(reason = "..")]`: an attribute that the macros read and take out.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::{Attribute, LitStr};

use crate::tokens::{group, is_punct};

/// The name of the attribute.
pub const ALLOW: &str = "allow_external_call";

/// An allowance that was found.
#[derive(Debug)]
pub struct Allowed {
    /// Why; none when it was left out, which is an error.
    pub reason: Option<String>,
    /// The attribute.
    pub tokens: TokenStream,
}

impl Allowed {
    /// What is wrong with it.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        self.reason.is_none().then_some(
            "an allowed call needs its reason: write `#[allow_external_call(reason = \"..\")]` with what makes it harmless here",
        )
    }

    /// The allowance that stands among the attributes of an item.
    #[must_use]
    pub fn among(attrs: &[Attribute]) -> Option<Self> {
        let attr =
            attrs.iter().find(|attr| is_allow(attr.path().segments.last().map(|last| last.ident.to_string())))?;
        let arguments = match &attr.meta {
            syn::Meta::List(list) => list.tokens.clone(),
            syn::Meta::Path(_) | syn::Meta::NameValue(_) => TokenStream::new(),
        };
        Some(Self { reason: reason(arguments), tokens: quote::ToTokens::to_token_stream(attr) })
    }

    /// The allowance of the arguments of the attribute.
    #[must_use]
    pub fn of_arguments(arguments: TokenStream) -> Self {
        Self { reason: reason(arguments), tokens: TokenStream::new() }
    }

    /// The allowance at `at` of the tokens of a body: `#` and a group.
    pub(crate) fn at(trees: &[TokenTree], at: usize) -> Option<Self> {
        if !is_punct(trees, at, '#') {
            return None;
        }
        let inside = group(trees, at + 1, Delimiter::Bracket)?.stream();
        let inside: Vec<TokenTree> = inside.into_iter().collect();
        let name = inside.iter().rev().find_map(|tree| match tree {
            TokenTree::Ident(ident) => Some(ident.to_string()),
            _ => None,
        });
        if !is_allow(name) {
            return None;
        }
        let arguments = inside.last().and_then(|tree| match tree {
            TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        });
        let tokens = trees[at..at + 2].iter().cloned().collect();
        Some(Self { reason: reason(arguments.unwrap_or_default()), tokens })
    }
}

fn is_allow(name: Option<String>) -> bool {
    name.is_some_and(|name| name == ALLOW)
}

/// The text in `reason = ".."`, unless it is empty.
fn reason(arguments: TokenStream) -> Option<String> {
    let parsed = syn::parse::Parser::parse2(
        |input: syn::parse::ParseStream<'_>| {
            let name: syn::Ident = input.parse()?;
            input.parse::<syn::Token![=]>()?;
            let text: LitStr = input.parse()?;
            input.parse::<Option<syn::Token![,]>>()?;
            Ok((name, text))
        },
        arguments,
    );
    let (name, text) = parsed.ok()?;
    (name == "reason" && !text.value().trim().is_empty()).then(|| text.value())
}

/// The tokens without any allowance in them.
#[must_use]
pub fn without_allows(tokens: TokenStream) -> TokenStream {
    stripped(&tokens).unwrap_or(tokens)
}

/// The tokens without allowances, if there are any: what has none keeps its groups as they are.
fn stripped(tokens: &TokenStream) -> Option<TokenStream> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let (mut kept, mut changed) = (Vec::with_capacity(trees.len()), false);
    let mut at = 0;
    while at < trees.len() {
        if Allowed::at(&trees, at).is_some() {
            (changed, at) = (true, at + 2);
            continue;
        }
        let new = match &trees[at] {
            TokenTree::Group(group) => stripped(&group.stream()).map(|content| regrouped(group, content)),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
        };
        changed |= new.is_some();
        kept.push(new.map_or_else(|| trees[at].clone(), TokenTree::Group));
        at += 1;
    }
    changed.then(|| kept.into_iter().collect())
}

/// The group with other content.
fn regrouped(group: &Group, content: TokenStream) -> Group {
    let mut new = Group::new(group.delimiter(), content);
    if group.delimiter() != Delimiter::None {
        new.set_span(group.span());
    }
    new
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn a_reason_is_needed() {
        assert_eq!(
            reason(quote!(reason = "a lookup in a local daemon")).as_deref(),
            Some("a lookup in a local daemon")
        );
        for bad in [quote!(), quote!(reason), quote!(reason = ""), quote!(reason = 5), quote!(why = "x")] {
            assert_eq!(reason(bad.clone()), None, "{bad}");
        }
    }

    #[test]
    fn allowances_are_taken_out_in_depth() {
        let body = quote! { { #[allow_external_call(reason = "x")] a(); #[cfg(b)] c(); } };
        assert_eq!(without_allows(body).to_string(), quote! { { a(); #[cfg(b)] c(); } }.to_string());
    }
}
