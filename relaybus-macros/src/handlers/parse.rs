//! Parses the list: paths of functions and types.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser, discouraged::Speculative};
use syn::{Expr, Token, Type, TypePath, bracketed, token};

use crate::diag::Diagnostics;
use crate::rewrite::ungrouped;

/// What the macro was given.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) krate: TokenStream,
    pub(crate) handlers: Vec<TypePath>,
}

pub(crate) fn model(input: TokenStream, diag: &mut Diagnostics) -> Model {
    let mut model = Model::default();
    let parsed = (|input: ParseStream<'_>| {
        let krate;
        bracketed!(krate in input);
        model.krate = krate.parse()?;
        while !input.is_empty() {
            match handler(input) {
                Ok(handler) => {
                    model.handlers.push(handler);
                    if !input.is_empty() && !input.peek(Token![,]) {
                        diag.push(input.error("expected `,` between handlers"));
                    }
                }
                Err(error) => diag.push(error),
            }
            while !input.is_empty() && !input.peek(Token![,]) {
                input.parse::<TokenTree>()?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    })
    .parse2(input);
    diag.ok(parsed);
    model
}

fn handler(input: ParseStream<'_>) -> syn::Result<TypePath> {
    let fork = input.fork();
    match fork.parse::<Type>().as_ref().map(ungrouped) {
        Ok(Type::Path(path)) => {
            input.advance_to(&fork);
            if input.peek(token::Paren) {
                return Err(
                    input.error("`handlers!` names functions and does not call them: leave the parentheses out")
                );
            }
            Ok(path.clone())
        }
        _ => {
            let found: Expr = input.parse()?;
            let message =
                "`handlers!` takes the paths of functions with `#[consumer]` and of types with `#[consumers]`";
            Err(syn::Error::new_spanned(found, message))
        }
    }
}
