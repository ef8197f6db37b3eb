//! Parses the attribute and the function into a model.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Attribute, token};

use crate::args::{Arguments, Content, Place};
use crate::diag::Diagnostics;
use crate::lint::Written;
use crate::value::{At, text_of, wrong_kind};

/// Attempts of a transaction that is rerun and does not say how many: as many as those of `bus.transaction_at` in the docs.
const DEFAULT_ATTEMPTS: u32 = 3;

/// What the attribute was given and stands on.
pub(crate) struct Model {
    pub(crate) function: Written,
    pub(crate) isolation: Option<Isolation>,
    /// At most so many runs; one where nothing is rerun.
    pub(crate) attempts: u32,
    /// The path of relaybus, where it is given.
    krate: Option<syn::Path>,
}

impl Model {
    /// The path of relaybus. The usual one stands at `at`, so that errors about what follows it are shown there.
    pub(crate) fn krate(&self, at: Span) -> TokenStream {
        self.krate.as_ref().map_or_else(|| quote_spanned!(at=> ::relaybus), ToTokens::to_token_stream)
    }
}

/// An isolation level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// The variant of `IsolationLevel`.
    pub(crate) fn variant(self) -> &'static str {
        match self {
            Self::ReadCommitted => "ReadCommitted",
            Self::RepeatableRead => "RepeatableRead",
            Self::Serializable => "Serializable",
        }
    }

    /// Whether the database may refuse to serialize it.
    fn is_rerun(self) -> bool {
        self != Self::ReadCommitted
    }
}

pub(crate) fn model(arguments: TokenStream, item: TokenStream, diag: &mut Diagnostics) -> Option<Model> {
    let function = diag.ok(function.parse2(item));
    let arguments = Arguments::read(arguments, Place::Transaction, diag);
    let isolation = isolation(&arguments, diag);
    let attempts = attempts(&arguments, isolation, diag);
    let krate = arguments.path("crate", diag);
    Some(Model { function: function?, isolation, attempts, krate })
}

fn isolation(arguments: &Arguments, diag: &mut Diagnostics) -> Option<Isolation> {
    let given = arguments.find("isolation")?;
    let Content::Value(expr) = &given.content else { return None };
    let level = match text_of(expr).map(syn::LitStr::value).as_deref() {
        Some("read committed") => Some(Isolation::ReadCommitted),
        Some("repeatable read") => Some(Isolation::RepeatableRead),
        Some("serializable") => Some(Isolation::Serializable),
        _ => None,
    };
    if level.is_none() {
        wrong_kind(given.argument, expr, diag);
    }
    level
}

fn attempts(arguments: &Arguments, isolation: Option<Isolation>, diag: &mut Diagnostics) -> u32 {
    let is_rerun = isolation.is_some_and(Isolation::is_rerun);
    let span = arguments.expr("attempts").map(Spanned::span);
    let given = arguments.count::<u32>("attempts", diag).zip(span).map(|(value, span)| At { value, span });
    match given {
        Some(attempts) if is_rerun => attempts.value,
        Some(attempts) => {
            // An isolation that is wrong was reported, and may have been meant to be one that is rerun.
            if arguments.find("isolation").is_none() || isolation.is_some() {
                diag.at(
                    attempts.span,
                    "only serialization failures are run again, which this isolation level does not have: \
                     add `isolation = \"serializable\"`, or take `attempts` out",
                );
            }
            1
        }
        None if is_rerun => DEFAULT_ATTEMPTS,
        None => 1,
    }
}

fn function(input: ParseStream<'_>) -> syn::Result<Written> {
    let attrs = input.call(Attribute::parse_outer)?;
    let visibility = input.parse()?;
    let start = input.span();
    let refused = |message: &str| syn::Error::new(start, message);
    if input.peek(syn::Token![impl]) {
        return Err(refused("`#[transaction]` goes on an async function: put it on the methods of this block"));
    }
    let signature = input
        .parse::<syn::Signature>()
        .map_err(|_| refused("`#[transaction]` goes on an async function: write `async fn`"))?;
    if !input.peek(token::Brace) {
        return Err(syn::Error::new(
            signature.ident.span(),
            "`#[transaction]` goes on a function with a body: put it on a method of the type, not of the trait",
        ));
    }
    Ok(Written { attrs, visibility, signature, body: input.parse()? })
}

/// Whether an attribute is `#[transaction(..)]`, by any path.
pub(crate) fn is_transaction(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == "transaction")
}
