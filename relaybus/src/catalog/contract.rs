//! Module contracts: what one module consumes and produces, and the handlers that fulfil it. Checked by the compiler where
//! it can see, and again when the bus starts.

use super::text::Text;
use super::{Catalog, EventMeta, TypeTable};
use crate::registry::Entry;

/// A module with a contract: what `relaybus::module!` makes of a name. Give it to `RelayBusBuilder::module`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    label = "expected the name of a `relaybus::module! {{ name: .. }}`"
)]
pub trait Module: 'static {
    /// Stands for the transaction handles that its handlers take.
    type Handles;
    /// The contract.
    const CONTRACT: Contract;
}

/// What a module consumes, produces and handles.
#[derive(Clone, Copy, Debug)]
pub struct Contract {
    pub(crate) name: &'static str,
    pub(crate) consumes: &'static [ContractPart],
    pub(crate) produces: &'static [ContractPart],
    pub(crate) handlers: &'static [&'static [Entry]],
    pub(crate) location: &'static str,
}

inventory::collect!(Contract);

impl Contract {
    /// A contract. For generated code.
    #[must_use]
    pub const fn new(
        name: &'static str,
        consumes: &'static [ContractPart],
        produces: &'static [ContractPart],
        handlers: &'static [&'static [Entry]],
        location: &'static str,
    ) -> Self {
        Self { name, consumes, produces, handlers, location }
    }

    /// The handlers of the module.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        self.handlers.iter().copied().flatten()
    }
}

/// The events of a catalog that a contract is about: all of them, or the variants it names.
#[derive(Clone, Copy, Debug)]
pub struct ContractPart {
    pub(crate) catalog: &'static str,
    pub(super) events: &'static [EventMeta],
    only: Option<&'static [&'static str]>,
}

impl ContractPart {
    /// All events of `C`. For generated code.
    #[must_use]
    pub const fn all<C: Catalog>() -> Self {
        Self { catalog: C::NAME, events: C::EVENTS, only: None }
    }

    /// The events of `C` of these variants. For generated code.
    #[must_use]
    pub const fn only<C: Catalog>(variants: &'static [&'static str]) -> Self {
        Self { only: Some(variants), ..Self::all::<C>() }
    }

    pub(super) const fn has(&self, event: &EventMeta) -> bool {
        let Some(only) = self.only else { return true };
        let mut i = 0;
        while i < only.len() {
            if super::meta::same(only[i], event.name) {
                return true;
            }
            i += 1;
        }
        false
    }

    /// The events that it is about.
    pub(crate) fn events(&self) -> impl Iterator<Item = &'static EventMeta> {
        let part = *self;
        self.events.iter().filter(move |event| part.has(event))
    }
}

/// Length of the longest message, about twenty gaps.
const MESSAGE: usize = 8192;
/// What is left of it when no more gaps are listed.
const RESERVED: usize = 1024;

/// Checks that the handlers cover what a module consumes of a catalog, at compile time; the message is the compiler's.
///
/// # Panics
/// When an event has no handler.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated in a const, the panic is the compiler's message")]
pub const fn consumes<const N: usize>(module: &str, part: &ContractPart, handled: &TypeTable<N>) {
    let mut gaps = Text::<MESSAGE>::new();
    let mut i = 0;
    while i < part.events.len() {
        let event = &part.events[i];
        if part.has(event) && !handled.has(&event.hashed()) {
            gaps = if gaps.len() + RESERVED < MESSAGE { gap(gaps, part.catalog, event) } else { gaps };
        }
        i += 1;
    }
    if gaps.len() > 0 {
        let message = Text::<{ MESSAGE + RESERVED }>::new()
            .with("module `")
            .with(module)
            .with("` consumes `")
            .with(part.catalog)
            .with("` but has no handler for:")
            .with(gaps.as_str());
        panic!("{}", message.as_str());
    }
}

const fn gap(gaps: Text<MESSAGE>, catalog: &str, event: &EventMeta) -> Text<MESSAGE> {
    gaps.with("\n  - ")
        .with(catalog)
        .with(".")
        .with(event.name)
        .with(" (")
        .with(event.event_type)
        .with("): add `#[consumer(")
        .with(event.spelled)
        .with(")] async fn ")
        .with(event.method)
        .with("(..)` and list it under `handlers`")
}

/// Checks that a handler of a module handles only what the module consumes, at compile time; the message is the compiler's.
///
/// # Panics
/// When it handles another event.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated in a const, the panic is the compiler's message")]
pub const fn belongs<const N: usize>(handler: &str, entries: &[Entry], consumed: &TypeTable<N>) {
    let mut i = 0;
    while i < entries.len() {
        let events = entries[i].events;
        let mut j = 0;
        while j < events.len() {
            if !consumed.has(&events[j]) {
                let message = Text::<MESSAGE>::new()
                    .with("`")
                    .with(handler)
                    .with("` handles `")
                    .with(events[j].name)
                    .with("`, which nothing under `consumes` has: add the event there, or take the handler out");
                panic!("{}", message.as_str());
            }
            j += 1;
        }
        i += 1;
    }
}

/// States what a module consumes and produces, and names the handlers that fulfil it.
///
/// ```
/// # use relaybus::{Event, catalog, consumer};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] pub struct OrderPlaced {}
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.shipped.v1")] pub struct OrderShipped {}
/// # #[catalog] pub enum OrderEvents { OrderPlaced(OrderPlaced), OrderShipped(OrderShipped) }
/// #[consumer(OrderPlaced, id = "shipping.ship")]
/// async fn ship(event: OrderPlaced) {}
///
/// relaybus::module! {
///     name: shipping,
///     consumes: [OrderEvents::{OrderPlaced}],
///     produces: [OrderEvents::{OrderShipped}],
///     handlers: [ship],
/// }
/// ```
///
/// A catalog stands for all its events, or for the variants in braces after it. `consumes`, `produces` and `handlers` may
/// be left out. The compiler refuses a contract with a consumed event that no handler takes, and one with a handler of an
/// event that is not consumed; handlers are functions with `#[consumer]` and types with `#[consumers]`, here or in other
/// crates. When the bus starts it checks that each consumed event has one of these handlers registered and each produced
/// event a route.
///
/// The name, `name: pub shipping` where others need it, becomes a type for `RelayBusBuilder::module`. A bus that discovers
/// its handlers finds the modules too.
#[macro_export]
macro_rules! module {
    ($($contract:tt)*) => {
        $crate::__private::module_contract! { [$crate] $($contract)* }
    };
}
