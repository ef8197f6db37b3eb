//! The settings of a consumer: read from its arguments, written as a constant.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Attribute, Lit, LitStr, Type};

use crate::args::{Arguments, Content};
use crate::diag::Diagnostics;
use crate::grammar;
use crate::value::{At, literal, text_of, wrong_kind};

/// What a consumer sets for itself.
pub(crate) struct Settings {
    pub(crate) id: Option<LitStr>,
    pub(crate) transactional: bool,
    retry: Retry,
    timeout: Option<Timeout>,
    concurrency: Option<usize>,
    replay: bool,
}

#[derive(Default)]
struct Retry {
    attempts: Option<Attempts>,
    initial_delay: Option<At<u64>>,
    factor: Option<f64>,
    max_delay: Option<At<u64>>,
}

enum Attempts {
    Limited(u32),
    Unlimited,
}

enum Timeout {
    After(u64),
    Never,
}

impl Settings {
    pub(crate) fn read(arguments: &Arguments, diag: &mut Diagnostics) -> Self {
        Self {
            id: id(arguments, diag),
            transactional: arguments.flag("transactional"),
            retry: arguments.list("retry").map(|list| Retry::read(list, diag)).unwrap_or_default(),
            timeout: timeout(arguments, diag),
            concurrency: arguments.count("concurrency", diag),
            replay: choice(arguments, "order", &["strict", "replay"], diag) == Some("replay"),
        }
    }

    /// The value of `Handler::OPTIONS`.
    pub(crate) fn options(&self) -> TokenStream {
        if self.retry.is_empty() && self.timeout.is_none() && self.concurrency.is_none() && !self.replay {
            return quote!(__relaybus::ConsumerOptions::NONE);
        }
        let retry = self.retry.overrides();
        let timeout = option(self.timeout.as_ref().map(|timeout| match timeout {
            Timeout::After(millis) => {
                let duration = duration(*millis);
                quote!(__relaybus::SetTimeout::After(#duration))
            }
            Timeout::Never => quote!(__relaybus::SetTimeout::Never),
        }));
        let concurrency = option(self.concurrency.map(|count| quote!(#count)));
        let order = if self.replay { quote!(Replay) } else { quote!(Strict) };
        quote!(__relaybus::ConsumerOptions::new(#retry, #timeout, #concurrency, __relaybus::Order::#order))
    }
}

impl Retry {
    fn read(arguments: &Arguments, diag: &mut Diagnostics) -> Self {
        let retry = Self {
            attempts: attempts(arguments, diag),
            initial_delay: arguments.duration("initial_delay", diag),
            factor: arguments.factor("factor", diag),
            max_delay: arguments.duration("max_delay", diag),
        };
        if let (Some(initial), Some(max)) = (retry.initial_delay, retry.max_delay)
            && max.value < initial.value
        {
            diag.at(max.span, "`max_delay` is below `initial_delay`: expected at least as much");
        }
        retry
    }

    fn is_empty(&self) -> bool {
        self.attempts.is_none() && self.initial_delay.is_none() && self.factor.is_none() && self.max_delay.is_none()
    }

    fn overrides(&self) -> TokenStream {
        if self.is_empty() {
            return quote!(__relaybus::RetryOverrides::NONE);
        }
        let attempts = option(self.attempts.as_ref().map(|attempts| match attempts {
            Attempts::Limited(count) => quote!(__relaybus::Attempts::Limited(#count)),
            Attempts::Unlimited => quote!(__relaybus::Attempts::Unlimited),
        }));
        let initial_delay = option(self.initial_delay.map(|delay| duration(delay.value)));
        let factor = option(self.factor.map(|factor| quote!(#factor)));
        let max_delay = option(self.max_delay.map(|delay| duration(delay.value)));
        quote! {
            __relaybus::RetryOverrides {
                attempts: #attempts,
                initial_delay: #initial_delay,
                factor: #factor,
                max_delay: #max_delay,
            }
        }
    }
}

fn id(arguments: &Arguments, diag: &mut Diagnostics) -> Option<LitStr> {
    let id = arguments.text("id", diag)?;
    if let Err(message) = grammar::handler_id(&id.value()) {
        diag.over(&id, message);
    }
    Some(id)
}

fn timeout(arguments: &Arguments, diag: &mut Diagnostics) -> Option<Timeout> {
    if let Some(Lit::Bool(value)) = arguments.expr("timeout").and_then(literal)
        && !value.value
    {
        return Some(Timeout::Never);
    }
    arguments.duration("timeout", diag).map(|duration| Timeout::After(duration.value))
}

fn attempts(arguments: &Arguments, diag: &mut Diagnostics) -> Option<Attempts> {
    if let Some(text) = arguments.expr("attempts").and_then(text_of)
        && text.value() == "infinite"
    {
        return Some(Attempts::Unlimited);
    }
    arguments.count("attempts", diag).map(Attempts::Limited)
}

fn choice(arguments: &Arguments, name: &str, choices: &[&'static str], diag: &mut Diagnostics) -> Option<&'static str> {
    let given = arguments.find(name)?;
    let Content::Value(expr) = &given.content else { return None };
    let chosen = text_of(expr).and_then(|text| choices.iter().copied().find(|choice| *choice == text.value()));
    if chosen.is_none() {
        wrong_kind(given.argument, expr, diag);
    }
    chosen
}

fn option(value: Option<TokenStream>) -> TokenStream {
    value.map_or_else(|| quote!(__relaybus::Option::None), |value| quote!(__relaybus::Option::Some(#value)))
}

fn duration(millis: u64) -> TokenStream {
    quote!(__relaybus::Duration::from_millis(#millis))
}

/// The event that an attribute names; `attr` is the attribute, unless it is the one that is expanded.
pub(crate) fn event(arguments: &Arguments, attr: Option<&Attribute>, diag: &mut Diagnostics) -> Option<Type> {
    for extra in arguments.positional.iter().skip(1) {
        diag.over(extra, "a consumer handles one event: write a second consumer for another one");
    }
    let Some(first) = arguments.positional.first() else {
        if !arguments.faulty {
            let message = "a consumer needs its event: write `#[consumer(OrderPlaced)]` with the event's Rust type";
            match attr {
                Some(attr) => diag.over(attr, message),
                None => diag.at(Span::call_site(), message),
            }
        }
        return None;
    };
    let event = syn::parse2::<Type>(first.clone()).ok();
    if event.is_none() {
        diag.over(first, "expected the event's Rust type, such as `OrderPlaced`");
    }
    event
}
