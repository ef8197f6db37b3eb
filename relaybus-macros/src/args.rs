//! The arguments of all macros, each declared once: its name, its kind and where it is allowed.
//!
//! Reading a list of arguments reports from this table what is unknown, repeated, in the wrong place, without a value
//! or with one it does not take. `value` reads the values by their kind.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser, discouraged::Speculative};
use syn::{Expr, Token, Type, token};

use crate::diag::Diagnostics;
use crate::grammar::nearest;

/// Where a list of arguments is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// `#[event(..)]`.
    Event,
    /// `#[consumer(..)]` on a function.
    Consumer,
    /// `#[consumer(..)]` on a method.
    Method,
    /// `#[consumers(..)]`.
    Consumers,
    /// `#[consumers(Catalog, ..)]`.
    CatalogConsumers,
    /// `#[catalog(..)]`.
    Catalog,
    /// `retry(..)`.
    Retry,
    /// `#[transaction(..)]`.
    Transaction,
}

impl Place {
    fn shown(self) -> &'static str {
        match self {
            Self::Event => "`#[event(..)]`",
            Self::Consumer => "`#[consumer(..)]`",
            Self::Method => "`#[consumer(..)]` of a method",
            Self::Consumers => "`#[consumers(..)]`",
            Self::CatalogConsumers => "`#[consumers(..)]` with a catalog",
            Self::Catalog => "`#[catalog(..)]`",
            Self::Retry => "`retry(..)`",
            Self::Transaction => "`#[transaction(..)]`",
        }
    }

    /// Whether something without a name may stand in this list: the event, or the catalog.
    fn has_positional(self) -> bool {
        matches!(self, Self::Event | Self::Consumer | Self::Method | Self::CatalogConsumers)
    }
}

/// What kind of value an argument takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None.
    Flag,
    /// Settings of its own, in parentheses.
    List(Place),
    /// One, after `=`; the text says which.
    Value(&'static str),
}

/// An argument of a macro.
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) example: &'static str,
    places: &'static [Place],
}

const HANDLER: &[Place] = &[Place::Consumer, Place::Method];
const SETTINGS: &[Place] = &[Place::Consumer, Place::Method, Place::CatalogConsumers];
const TOP: &[Place] = &[Place::Event, Place::Consumer, Place::Consumers, Place::CatalogConsumers, Place::Catalog];

const TRANSACTION: &[Place] = &[Place::Transaction];

const fn value(name: &'static str, what: &'static str, example: &'static str, places: &'static [Place]) -> Argument {
    Argument { name, kind: Kind::Value(what), example, places }
}

#[rustfmt::skip]
const TABLE: &[Argument] = &[
    value("key", "a field, a function or a closure", "key = order_id", &[Place::Event]),
    value("validate", "the path of a function", "validate = check_order", &[Place::Event]),
    value("id", "a text", r#"id = "shipping.ship""#, HANDLER),
    Argument {
        name: "retry", kind: Kind::List(Place::Retry), places: SETTINGS,
        example: r#"retry(attempts = 5, initial_delay = "2s")"#,
    },
    value("timeout", "a duration as text, or `false`", r#"timeout = "30s""#, SETTINGS),
    value("concurrency", "a whole number of at least 1", "concurrency = 4", SETTINGS),
    Argument { name: "transactional", kind: Kind::Flag, places: SETTINGS, example: "transactional" },
    value("order", r#"`"strict"` or `"replay"`"#, r#"order = "replay""#, SETTINGS),
    value("companion", "a name for the type beside the function", "companion = ShipHandler", &[Place::Consumer]),
    value(
        "companion", "a name for the type that lists the block", "companion = ShippingReturns",
        &[Place::Consumers, Place::CatalogConsumers],
    ),
    value("prefix", "a text", r#"prefix = "shipping""#, &[Place::CatalogConsumers]),
    value("name", "a text", r#"name = "orders""#, &[Place::Catalog]),
    Argument { name: "schema", kind: Kind::Flag, places: &[Place::Catalog], example: "schema" },
    value("of", "the path of a catalog", "of = OrderEvents", &[Place::Catalog]),
    value("crate", "the path of relaybus", "crate = my_framework::relaybus", TOP),
    value("attempts", r#"a whole number of at least 1, or `"infinite"`"#, "attempts = 5", &[Place::Retry]),
    value("initial_delay", "a duration as text", r#"initial_delay = "2s""#, &[Place::Retry]),
    value("factor", "a number of at least 1", "factor = 2.0", &[Place::Retry]),
    value("max_delay", "a duration as text", r#"max_delay = "5m""#, &[Place::Retry]),
    value(
        "isolation", r#"`"read committed"`, `"repeatable read"` or `"serializable"`"#,
        r#"isolation = "serializable""#, TRANSACTION,
    ),
    // Elsewhere these two, as `companion` above, are other arguments of the same names.
    value("attempts", "a whole number of at least 1", "attempts = 5", TRANSACTION),
    value("crate", "the path of relaybus", "crate = my_framework::relaybus", TRANSACTION),
];

fn allowed_names(place: Place) -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter(move |argument| argument.places.contains(&place)).map(|argument| argument.name)
}

/// An argument that was given.
pub(crate) struct Given {
    pub(crate) argument: &'static Argument,
    pub(crate) content: Content,
}

/// What was written after the name of an argument.
pub(crate) enum Content {
    Nothing,
    Value(Box<Expr>),
    List(Arguments),
}

/// The arguments of one list.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) given: Vec<Given>,
    /// What has no name: the event.
    pub(crate) positional: Vec<TokenStream>,
    /// Whether something was wrong with them: what is missing may then be due to that.
    pub(crate) faulty: bool,
}

impl Arguments {
    /// Reads the arguments in `tokens`, reporting whatever the table refuses.
    pub(crate) fn read(tokens: TokenStream, place: Place, diag: &mut Diagnostics) -> Self {
        let mut arguments = Self::default();
        arguments.read_more(tokens, place, diag);
        arguments
    }

    /// Reads another list of the same place, as if it continued this one.
    pub(crate) fn read_more(&mut self, tokens: TokenStream, place: Place, diag: &mut Diagnostics) {
        let before = diag.count();
        let parsed = (|input: ParseStream<'_>| {
            self.parse(input, place, diag);
            Ok(())
        })
        .parse2(tokens);
        diag.ok(parsed);
        self.faulty |= diag.count() > before;
    }

    /// The argument of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Given> {
        self.given.iter().find(|given| given.argument.name == name)
    }

    fn parse(&mut self, input: ParseStream<'_>, place: Place, diag: &mut Diagnostics) {
        while !input.is_empty() {
            if let Err(error) = self.parse_one(input, place, diag) {
                diag.push(error);
                skip_to_comma(input);
            }
            if input.peek(Token![,]) {
                let _ = input.parse::<Token![,]>();
            } else if !input.is_empty() {
                diag.push(input.error("expected `,` between arguments"));
                skip_to_comma(input);
                let _ = input.parse::<Token![,]>();
            }
        }
    }

    fn parse_one(&mut self, input: ParseStream<'_>, place: Place, diag: &mut Diagnostics) -> syn::Result<()> {
        if !self.starts_named(input, place) {
            self.positional.push(positional(input, place)?);
            return Ok(());
        }
        let name = Ident::parse_any(input)?;
        let Some(argument) = lookup(&name, place, diag) else {
            skip_to_comma(input);
            return Ok(());
        };
        if self.find(argument.name).is_some() {
            diag.at(name.span(), format!("`{}` is given twice: keep one", argument.name));
            skip_to_comma(input);
            return Ok(());
        }
        let content = content(input, &name, argument, diag)?;
        self.given.push(Given { argument, content });
        Ok(())
    }

    /// Whether the next argument has a name. A word that stands alone is one when the table knows it, or when nothing
    /// without a name may stand there and it does not look like a type.
    fn starts_named(&self, input: ParseStream<'_>, place: Place) -> bool {
        if !input.peek(syn::Ident::peek_any) || input.peek2(Token![::]) {
            return false;
        }
        if (input.peek2(Token![=]) && !input.peek2(Token![==])) || input.peek2(token::Paren) || !place.has_positional()
        {
            return true;
        }
        let Ok(word) = Ident::parse_any(&input.fork()) else { return false };
        let word = word.to_string();
        let looks_like_type = word.starts_with(|c: char| c.is_uppercase()) || word.starts_with("r#");
        TABLE.iter().any(|argument| argument.name == word) || (!looks_like_type && !self.positional.is_empty())
    }
}

/// Whether a list has something without a name.
pub(crate) fn names_something(tokens: &TokenStream, place: Place) -> bool {
    !Arguments::read(tokens.clone(), place, &mut Diagnostics::default()).positional.is_empty()
}

/// The table's entry of `name`, or a report of what is wrong with it.
fn lookup(name: &Ident, place: Place, diag: &mut Diagnostics) -> Option<&'static Argument> {
    let word = name.to_string();
    let mut named = TABLE.iter().filter(|argument| argument.name == word);
    let known = named.clone().find(|argument| argument.places.contains(&place)).or_else(|| named.next());
    match known {
        Some(argument) if argument.places.contains(&place) => return Some(argument),
        Some(argument) => {
            let message = format!("`{word}` belongs in {}, not in {}", right_places(argument, place), place.shown());
            diag.at(name.span(), message);
        }
        None => {
            let hint = match nearest(&word, allowed_names(place)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => {
                    let names: Vec<_> = allowed_names(place).map(|name| format!("`{name}`")).collect();
                    format!("{} takes {}", place.shown(), names.join(", "))
                }
            };
            diag.at(name.span(), format!("unknown argument `{word}`: {hint}"));
        }
    }
    None
}

/// The places of an argument, in words; methods go without saying, except among methods, and so do catalogs where a
/// consumer has the same.
fn right_places(argument: &Argument, wrong: Place) -> String {
    let has_consumer = argument.places.contains(&Place::Consumer);
    let goes_without_saying = |place: Place| match place {
        Place::Method => true,
        Place::CatalogConsumers => has_consumer,
        Place::Event | Place::Consumer | Place::Consumers | Place::Catalog | Place::Retry | Place::Transaction => false,
    };
    let places = argument.places.iter().filter(|place| !goes_without_saying(**place));
    let mut words: Vec<_> = places.map(|place| place.shown().to_owned()).collect();
    if wrong == Place::Method {
        words
            .iter_mut()
            .filter(|word| *word == Place::Consumer.shown())
            .for_each(|word| word.push_str(" of a function"));
    }
    match words.pop() {
        Some(last) if !words.is_empty() => format!("{} or {last}", words.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn content(
    input: ParseStream<'_>,
    name: &Ident,
    argument: &'static Argument,
    diag: &mut Diagnostics,
) -> syn::Result<Content> {
    let shape = |span: Span, what: &str| syn::Error::new(span, format!("{what}: write `{}`", argument.example));
    let at_end = input.is_empty() || input.peek(Token![,]);
    match argument.kind {
        Kind::Flag if at_end => Ok(Content::Nothing),
        Kind::Flag => Err(shape(name.span(), &format!("`{}` takes no value", argument.name))),
        Kind::List(place) if input.peek(token::Paren) => {
            let list;
            syn::parenthesized!(list in input);
            let mut nested = Arguments::default();
            if list.is_empty() {
                return Err(shape(name.span(), &format!("`{}` sets nothing", argument.name)));
            }
            nested.parse(&list, place, diag);
            Ok(Content::List(nested))
        }
        Kind::List(_) => Err(shape(name.span(), &format!("`{}` takes its settings in parentheses", argument.name))),
        Kind::Value(what) => {
            let eq: Option<Token![=]> = input.parse()?;
            if eq.is_none() || input.is_empty() || input.peek(Token![,]) {
                return Err(shape(name.span(), &format!("`{}` needs {what}", argument.name)));
            }
            Ok(Content::Value(input.parse()?))
        }
    }
}

/// Something without a name: a type, or an expression that the macro will refuse in its own words.
fn positional(input: ParseStream<'_>, place: Place) -> syn::Result<TokenStream> {
    if place != Place::Event {
        let fork = input.fork();
        if let Ok(found) = fork.parse::<Type>() {
            input.advance_to(&fork);
            return Ok(found.into_token_stream());
        }
    }
    input.parse::<Expr>().map(ToTokens::into_token_stream)
}

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        let _ = input.parse::<TokenTree>();
    }
}
