//! A list of handlers by name, from `handlers![..]`: checked against the store's family by the compiler.

use std::fmt;
use std::marker::PhantomData;

use super::entry::{Consumers, Entry, LentBy};
use crate::store::Family;

/// Handlers named one by one, all of which fit stores of family `F`: the value of [`handlers!`](crate::handlers).
pub struct HandlerList<F> {
    entries: Vec<Entry>,
    family: PhantomData<fn() -> F>,
}

impl<F> Default for HandlerList<F> {
    fn default() -> Self {
        Self { entries: Vec::new(), family: PhantomData }
    }
}

impl<F: Family> HandlerList<F> {
    /// A list without handlers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the handlers of `H`: one of a function with `#[consumer]`, all of a type with `#[consumers]`.
    pub fn add<H: Consumers>(&mut self)
    where
        H::Handles: LentBy<F>,
    {
        self.entries.extend_from_slice(H::ENTRIES);
    }
}

impl<F> HandlerList<F> {
    /// The handlers, in the order they were named.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl<F> Clone for HandlerList<F> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), family: PhantomData }
    }
}

impl<F> fmt::Debug for HandlerList<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| entry.id)).finish()
    }
}

/// Names handlers one by one, by the paths of functions with `#[consumer]` and of types with `#[consumers]`.
///
/// The list is checked against the store of the bus that takes it. Where the compiler says `expected type, found function`, the
/// function has no `#[consumer]`: with it, its path is also the name of a type. Naming a handler of another crate also keeps that
/// crate linked: the linker drops the registrations of a crate that nobody names.
///
/// ```
/// use relaybus::{Event, MemoryStore, RelayBus, consumer, consumers, handlers};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)]
/// # #[event("order.placed.v1")]
/// # struct OrderPlaced {}
///
/// #[consumer(OrderPlaced, id = "shipping.ship")]
/// async fn ship(event: OrderPlaced) {}
///
/// struct Billing;
///
/// #[consumers]
/// impl Billing {
///     #[consumer(OrderPlaced, id = "billing.bill")]
///     async fn bill(&self, event: OrderPlaced) {}
/// }
///
/// let bus = RelayBus::builder(MemoryStore::new()).provide(Billing).handlers(handlers![ship, Billing]).build()?;
/// assert_eq!(bus.handlers().len(), 2);
/// # Ok::<(), relaybus::Error>(())
/// ```
#[macro_export]
macro_rules! handlers {
    ($($handlers:tt)*) => {
        $crate::__private::handler_list! { [$crate] $($handlers)* }
    };
}
