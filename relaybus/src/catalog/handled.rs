//! Handlers of whole catalogs: the entries behind the generated handler traits.

use std::marker::PhantomData;

use super::text::Text;
use super::{Catalog, EventMeta, HashedType, MemberOf};
use crate::context::HandlerContext;
use crate::envelope::Envelope;
use crate::error::{BoxError, Result};
use crate::registry::{CallFn, ConsumerOptions, DecodeFn, Entry, FromDelivery, Needs, Parts, decode_any};
use crate::store::TypeRef;

/// What a method of a catalog's handler trait returns. `?` converts any error; one of relaybus keeps its meaning.
pub type HandlerResult = std::result::Result<(), BoxError>;

/// A catalog whose events the methods of `T` handle, in a transaction or not by the mode `M`. Generated code implements
/// it for every `T` with the handler trait of the catalog.
#[diagnostic::on_unimplemented(
    message = "`{T}` does not handle the catalog `{Self}`",
    label = "does not implement the handler trait of `{Self}`",
    note = "write `impl {Self}Handlers for {T}` with one method an event, or `impl {Self}TxHandlers<H> for {T}` to handle them in a transaction"
)]
pub trait HandledBy<T, M = Directly>: Catalog {
    /// One entry an event, in the order of [`Catalog::EVENTS`].
    const ENTRIES: &'static [CatalogEntry];
}

/// Mode of handlers that run outside a transaction.
#[derive(Debug)]
pub enum Directly {}

/// Mode of handlers that run in a transaction of the store, whose handle is an `H`.
#[derive(Debug)]
pub struct InTransaction<H>(PhantomData<fn() -> H>);

/// How one event of a catalog is handled.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// The method: the end of its handler id.
    pub method: &'static str,
    /// The event.
    pub events: &'static [HashedType],
    /// What the method needs.
    pub needs: &'static [Needs],
    /// Whether it runs in a transaction that also completes its delivery.
    pub transactional: bool,
    /// Decodes the event.
    pub decode: DecodeFn,
    /// Calls the method.
    pub call: CallFn,
}

/// The constants of an entry, which depend on its types.
struct Parameters<T, E, H>(PhantomData<(T, E, H)>);

impl<T: 'static, E: crate::Event, H: 'static> Parameters<T, E, H> {
    const EVENTS: &'static [HashedType] = &[HashedType::of::<E>()];
    const DIRECT: &'static [Needs] = &[Needs::Instance(TypeRef::of::<T>()), Needs::Event];
    const TRANSACTIONAL: &'static [Needs] =
        &[Needs::Instance(TypeRef::of::<T>()), Needs::Event, Needs::Handle(TypeRef::of::<H>())];
}

impl CatalogEntry {
    /// The entry of a method of `T`. For generated code.
    #[must_use]
    pub const fn of<C, E: MemberOf<C>, T: 'static>(method: &'static str, call: CallFn) -> Self {
        Self {
            method,
            events: Parameters::<T, E, ()>::EVENTS,
            needs: Parameters::<T, E, ()>::DIRECT,
            transactional: false,
            decode: decode_any::<E>,
            call,
        }
    }

    /// The entry of a method of `T` that takes the transaction handle `H`. For generated code.
    #[must_use]
    pub const fn transactional<C, E: MemberOf<C>, T: 'static, H: 'static>(method: &'static str, call: CallFn) -> Self {
        Self { needs: Parameters::<T, E, H>::TRANSACTIONAL, transactional: true, ..Self::of::<C, E, T>(method, call) }
    }
}

/// The arguments of a method of a handler trait, for generated code.
///
/// # Errors
/// `RELAYBUS_CONFIGURATION` when no `T` was provided.
pub fn arguments<'p, T, E>(parts: &mut Parts<'p>) -> Result<(&'p T, &'p Envelope<E>, &'p HandlerContext)>
where
    T: Send + Sync + 'static,
    E: Send + 'static,
{
    let this = parts.state_ref::<T>()?;
    let event = <&'p Envelope<E> as FromDelivery<'p, E, _>>::from_delivery(parts)?;
    Ok((this, event, parts.context()))
}

/// The arguments of a transactional method.
type ArgumentsIn<'p, T, E, H> = (&'p T, &'p Envelope<E>, &'p mut H, &'p HandlerContext);

/// The arguments of a method of a transactional handler trait, for generated code.
///
/// # Errors
/// `RELAYBUS_CONFIGURATION` when no `T` was provided or the store lends no `H`.
pub fn arguments_in<'p, T, E, H>(parts: &mut Parts<'p>) -> Result<ArgumentsIn<'p, T, E, H>>
where
    T: Send + Sync + 'static,
    E: Send + 'static,
    H: 'static,
{
    let handle = parts.handle::<H>()?;
    let (this, event, context) = arguments(parts)?;
    Ok((this, event, handle, context))
}

/// Longest handler id, in bytes.
const MAX_ID: usize = 255;

/// A handler id that a constant is made of: `<prefix>.<method>`.
pub struct CatalogId(Text<MAX_ID>);

impl std::fmt::Debug for CatalogId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl CatalogId {
    #[track_caller]
    const fn new(prefix: &str, method: &str) -> Self {
        assert!(
            prefix.len() + 1 + method.len() <= MAX_ID,
            "a handler id, the prefix and the method, is longer than 255 bytes: give a shorter `prefix`"
        );
        Self(Text::new().with(prefix).with(".").with(method))
    }
}

/// The ids of the handlers of a catalog, for generated code.
///
/// # Panics
/// When one is longer than 255 bytes.
#[must_use]
#[track_caller]
pub const fn ids<const N: usize>(prefix: &str, events: &[EventMeta]) -> [CatalogId; N] {
    let mut ids = [const { CatalogId(Text::new()) }; N];
    let mut i = 0;
    while i < N {
        ids[i] = CatalogId::new(prefix, events[i].method);
        i += 1;
    }
    ids
}

/// The entries of the handlers of a catalog, for generated code.
#[must_use]
pub const fn entries<const N: usize>(
    ids: &'static [CatalogId; N],
    handlers: &[CatalogEntry],
    options: ConsumerOptions,
    location: &'static str,
) -> [Entry; N] {
    let mut entries = [Entry::NOTHING; N];
    let mut i = 0;
    while i < N {
        let CatalogEntry { events, needs, transactional, decode, call, .. } = handlers[i];
        let event = events[0].name;
        entries[i] =
            Entry { id: ids[i].0.as_str(), event, events, needs, transactional, options, decode, call, location };
        i += 1;
    }
    entries
}

/// The handlers of a type for one catalog, registered together: who registers them does not know the events.
#[derive(Clone, Copy, Debug)]
pub struct EntryGroup(pub &'static [Entry]);

inventory::collect!(EntryGroup);
