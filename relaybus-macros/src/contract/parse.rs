//! Parses a contract: its name, and lists of catalogs and handlers.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser, discouraged::Speculative};
use syn::{Path, Token, Type, TypePath, Visibility, braced, bracketed, token};

use crate::diag::Diagnostics;
use crate::grammar::nearest;
use crate::rewrite::ungrouped;

/// What the macro was given.
pub(crate) struct Model {
    pub(crate) krate: TokenStream,
    pub(crate) visibility: Visibility,
    pub(crate) name: Option<Ident>,
    pub(crate) consumes: Vec<Part>,
    pub(crate) produces: Vec<Part>,
    pub(crate) handlers: Vec<TypePath>,
    seen: Vec<String>,
}

/// A catalog, or the variants of one.
pub(crate) struct Part {
    pub(crate) catalog: Path,
    pub(crate) only: Option<Vec<Ident>>,
}

const FIELDS: [(&str, &str); 4] = [
    ("name", "name: shipping"),
    ("consumes", "consumes: [OrderEvents]"),
    ("produces", "produces: [OrderEvents::{OrderShipped}]"),
    ("handlers", "handlers: [ship]"),
];

pub(crate) fn model(input: TokenStream, diag: &mut Diagnostics) -> Model {
    let mut model = Model {
        krate: TokenStream::new(),
        visibility: Visibility::Inherited,
        name: None,
        consumes: Vec::new(),
        produces: Vec::new(),
        handlers: Vec::new(),
        seen: Vec::new(),
    };
    let parsed = (|input: ParseStream<'_>| {
        let krate;
        bracketed!(krate in input);
        model.krate = krate.parse()?;
        while !input.is_empty() {
            if let Err(error) = model.field(input, diag) {
                diag.push(error);
            } else if !input.is_empty() && !input.peek(Token![,]) {
                diag.push(input.error("expected `,` between the parts of a contract"));
            }
            skip_to_comma(input)?;
        }
        Ok(())
    })
    .parse2(input);
    diag.ok(parsed);
    if model.name.is_none() && diag.is_empty() {
        diag.at(Span::call_site(), "a module has a name: write `name: shipping`");
    }
    model
}

impl Model {
    fn field(&mut self, input: ParseStream<'_>, diag: &mut Diagnostics) -> syn::Result<()> {
        let name = Ident::parse_any(input).map_err(|error| {
            syn::Error::new(error.span(), "expected a part of a contract: `name`, `consumes`, `produces` or `handlers`")
        })?;
        let word = name.to_string();
        let Some((_, example)) = FIELDS.iter().find(|(field, _)| *field == word) else {
            let hint = match nearest(&word, FIELDS.iter().map(|(field, _)| *field)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "a contract has `name`, `consumes`, `produces` and `handlers`".to_owned(),
            };
            return Err(syn::Error::new(name.span(), format!("unknown part `{word}`: {hint}")));
        };
        if self.seen.contains(&word) {
            return Err(syn::Error::new(name.span(), format!("`{word}` is given twice: keep one")));
        }
        self.seen.push(word.clone());
        let shape = |what: &str| syn::Error::new(name.span(), format!("{what}: write `{example}`"));
        if !input.peek(Token![:]) {
            return Err(shape(&format!("`{word}` is followed by `:`")));
        }
        input.parse::<Token![:]>()?;
        if word == "name" {
            self.visibility = input.parse()?;
            self.name = Some(Ident::parse_any(input).map_err(|_| shape("a module's name is a Rust name"))?);
            return Ok(());
        }
        if !input.peek(token::Bracket) {
            return Err(shape(&format!("`{word}` is a list in brackets")));
        }
        let list;
        bracketed!(list in input);
        match word.as_str() {
            "consumes" => self.consumes = items(&list, part, diag)?,
            "produces" => self.produces = items(&list, part, diag)?,
            _ => self.handlers = items(&list, handler, diag)?,
        }
        Ok(())
    }
}

/// The items of a list; what is wrong with one leaves the others.
fn items<T>(
    list: ParseStream<'_>,
    parse: fn(ParseStream<'_>) -> syn::Result<T>,
    diag: &mut Diagnostics,
) -> syn::Result<Vec<T>> {
    let mut items = Vec::new();
    while !list.is_empty() {
        match parse(list) {
            Ok(item) => {
                items.push(item);
                if !list.is_empty() && !list.peek(Token![,]) {
                    diag.push(list.error("expected `,` between the items of a list"));
                }
            }
            Err(error) => diag.push(error),
        }
        skip_to_comma(list)?;
    }
    Ok(items)
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    input.parse::<Option<Token![,]>>()?;
    Ok(())
}

const CATALOGS: &str = "expected a catalog, such as `OrderEvents`, or events of one, `OrderEvents::{OrderPlaced}`";

/// `OrderEvents`, or `OrderEvents::{OrderPlaced, OrderShipped}`.
fn part(input: ParseStream<'_>) -> syn::Result<Part> {
    let start = input.span();
    // A macro by example hands a path on as a group of its own.
    let fork = input.fork();
    if let Ok(ty) = fork.parse::<Type>() {
        input.advance_to(&fork);
        return match ungrouped(&ty) {
            Type::Path(path) if path.qself.is_none() => Ok(Part { catalog: path.path.clone(), only: None }),
            other => Err(syn::Error::new_spanned(other, CATALOGS)),
        };
    }
    let mut catalog = Path { leading_colon: input.parse()?, segments: syn::punctuated::Punctuated::new() };
    loop {
        let name = Ident::parse_any(input).map_err(|_| syn::Error::new(start, CATALOGS))?;
        catalog.segments.push_value(name.into());
        if input.peek(Token![::]) && input.peek3(token::Brace) {
            input.parse::<Token![::]>()?;
            break;
        }
        catalog.segments.push_punct(input.parse().map_err(|_| syn::Error::new(start, CATALOGS))?);
    }
    let list;
    braced!(list in input);
    let events = list.parse_terminated(Ident::parse_any, Token![,]);
    // What is left over would be reported once more.
    list.parse::<TokenStream>()?;
    let events = events.map_err(|error| {
        syn::Error::new(error.span(), "expected the names of events of the catalog, such as `OrderPlaced`")
    })?;
    if events.is_empty() {
        return Err(syn::Error::new_spanned(
            catalog.to_token_stream(),
            "this names no event of the catalog: name some, or write the catalog alone for all of them",
        ));
    }
    Ok(Part { catalog, only: Some(events.into_iter().collect()) })
}

fn handler(input: ParseStream<'_>) -> syn::Result<TypePath> {
    let fork = input.fork();
    match fork.parse::<Type>().as_ref().map(ungrouped) {
        Ok(Type::Path(path)) if !fork.peek(token::Paren) => {
            input.advance_to(&fork);
            Ok(path.clone())
        }
        _ => {
            let message = "`handlers` takes the paths of functions with `#[consumer]` and of types with `#[consumers]`";
            Err(input.error(message))
        }
    }
}
