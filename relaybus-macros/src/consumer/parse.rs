//! Parses the attribute and the function into a model.

use proc_macro2::{Ident, TokenStream};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, FnArg, ReturnType, Signature, Type, Visibility};

use super::settings::{self, Settings};
use crate::args::{Arguments, Place};
use crate::diag::Diagnostics;
use crate::krate;

/// What the attribute was given and stands on.
pub(crate) struct Model {
    pub(crate) function: Function,
    pub(crate) event: Option<Type>,
    pub(crate) settings: Settings,
    pub(crate) companion: Option<Ident>,
    pub(crate) krate: TokenStream,
}

/// A function or method, without its body: the body is the compiler's affair.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
}

impl Function {
    /// The `cfg` attributes, which belong on everything that is generated from the function.
    pub(crate) fn cfgs(&self) -> Vec<Attribute> {
        cfgs(&self.attrs)
    }

    /// The types of the arguments, without the receiver, each with its `cfg` attributes.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = (Vec<Attribute>, &Type)> {
        self.signature.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(argument) => Some((cfgs(&argument.attrs), &*argument.ty)),
            FnArg::Receiver(_) => None,
        })
    }

    /// The type after `->`.
    pub(crate) fn output(&self) -> Option<&Type> {
        match &self.signature.output {
            ReturnType::Type(_, output) => Some(output),
            ReturnType::Default => None,
        }
    }
}

pub(crate) fn model(arguments: TokenStream, item: TokenStream, diag: &mut Diagnostics) -> Option<Model> {
    let function = diag.ok(function.parse2(item));
    let arguments = Arguments::read(arguments, Place::Consumer, diag);
    let event = settings::event(&arguments, None, diag);
    let settings = Settings::read(&arguments, diag);
    let companion = arguments.name("companion", diag);
    let krate = krate::path(&arguments, diag);
    Some(Model { function: function?, event, settings, companion, krate })
}

fn function(input: ParseStream<'_>) -> syn::Result<Function> {
    let attrs = input.call(Attribute::parse_outer)?;
    let visibility = input.parse()?;
    let start = input.span();
    if input.peek(syn::Token![impl]) {
        return Err(syn::Error::new(
            start,
            "`#[consumer]` goes on an async function: on an impl block write `#[consumers]`, and `#[consumer(..)]` on its methods",
        ));
    }
    let signature = input
        .parse()
        .map_err(|_| syn::Error::new(start, "`#[consumer]` goes on an async function: write `async fn`"))?;
    // The rest is the body.
    input.parse::<TokenStream>()?;
    Ok(Function { attrs, visibility, signature })
}

/// Whether an attribute is `#[consumer(..)]`, by any path.
pub(crate) fn is_consumer(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == "consumer")
}

fn cfgs(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect()
}
