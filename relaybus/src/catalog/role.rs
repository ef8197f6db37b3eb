//! Roles: what this service does with the events of a catalog, declared so that the boot can check it.

use std::marker::PhantomData;

use super::{Catalog, EventMeta, HashedType, SubsetOf};

/// What this service does with the events of the catalog `C`: made by [`consume`], [`produce`] and [`catalog`], given to
/// `RelayBusBuilder::catalog`.
///
/// | declaration | each event needs | does not count |
/// | --- | --- | --- |
/// | `consume::<C>()` | a local handler | a route |
/// | `produce::<C>()` | a route to a transport | a local handler |
/// | `catalog::<C>()` | a handler or a route | |
///
/// ```
/// # use relaybus::{Event, catalog, consume, produce};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.shipped.v1")] struct OrderShipped {}
/// # #[catalog] enum OrderEvents { OrderPlaced(OrderPlaced), OrderShipped(OrderShipped) }
/// let declared = [
///     relaybus::catalog::CatalogRole::from(produce::<OrderEvents>().only::<(OrderPlaced,)>()),
///     consume::<OrderEvents>().only::<(OrderShipped,)>().into(),
/// ];
/// ```
#[must_use = "a role does nothing until the bus's builder has it"]
pub struct Role<C, K> {
    selected: Option<&'static [HashedType]>,
    marker: PhantomData<fn() -> (C, K)>,
}

/// Kind of [`consume`].
#[derive(Debug)]
pub enum Consume {}
/// Kind of [`produce`].
#[derive(Debug)]
pub enum Produce {}
/// Kind of [`catalog`].
#[derive(Debug)]
pub enum Either {}

mod sealed {
    /// A kind of role, as a value.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Needed {
        Handler,
        Route,
        Either,
    }

    pub trait Kind {
        const NEEDED: Needed;
    }
}
pub(super) use sealed::Needed;

/// The kinds of roles: [`Consume`], [`Produce`] and [`Either`].
pub trait RoleKind: sealed::Kind {}

macro_rules! kind {
    ($($kind:ident $needed:ident),+) => {
        $(
            impl sealed::Kind for $kind {
                const NEEDED: Needed = Needed::$needed;
            }
            impl RoleKind for $kind {}
        )+
    };
}
kind!(Consume Handler, Produce Route, Either Either);

/// Each event of the catalog needs a handler here.
pub fn consume<C: Catalog>() -> Role<C, Consume> {
    Role::new()
}

/// Each event of the catalog needs a route to a transport here.
pub fn produce<C: Catalog>() -> Role<C, Produce> {
    Role::new()
}

/// Each event of the catalog needs a handler or a route here.
pub fn catalog<C: Catalog>() -> Role<C, Either> {
    Role::new()
}

impl<C, K> Role<C, K> {
    fn new() -> Self {
        Self { selected: None, marker: PhantomData }
    }

    /// Of the catalog's events only these: a tuple of event types, or a catalog with `#[catalog(of = C)]`.
    pub fn only<L: SubsetOf<C>>(self) -> Self {
        Self { selected: Some(L::TYPES), ..self }
    }
}

impl<C, K> Clone for Role<C, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, K> Copy for Role<C, K> {}

impl<C: Catalog, K: RoleKind> std::fmt::Debug for Role<C, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        CatalogRole::from(*self).fmt(f)
    }
}

/// A role without the type of its catalog.
#[derive(Clone, Copy, Debug)]
pub struct CatalogRole {
    pub(super) needed: Needed,
    pub(crate) catalog: &'static str,
    events: &'static [EventMeta],
    selected: Option<&'static [HashedType]>,
}

impl<C: Catalog, K: RoleKind> From<Role<C, K>> for CatalogRole {
    fn from(role: Role<C, K>) -> Self {
        Self { needed: K::NEEDED, catalog: C::NAME, events: C::EVENTS, selected: role.selected }
    }
}

impl CatalogRole {
    /// The events that it is about, in the order of the catalog.
    pub(crate) fn events(&self) -> impl Iterator<Item = &'static EventMeta> {
        let selected = self.selected;
        self.events
            .iter()
            .filter(move |event| selected.is_none_or(|selected| selected.iter().any(|one| one.is(&event.hashed()))))
    }

    /// An event that its list names twice.
    pub(crate) fn repeated(&self) -> Option<&'static HashedType> {
        let selected = self.selected?;
        selected.iter().enumerate().find(|(i, event)| selected[..*i].contains(event)).map(|(_, event)| event)
    }
}
