//! Handler arguments: what an argument is, a trait decides, so that aliases, renamed imports and a user's own
//! extractors work like ours.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;

use tokio_util::sync::CancellationToken;

use super::state::{State, States};
use crate::context::HandlerContext;
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::store::{AnyTransaction, Family, HandleOf, StoreTransaction, TypeRef};

/// What one delivery gives to its handler's arguments.
pub struct Parts<'p> {
    event: Option<&'p mut (dyn Any + Send)>,
    context: &'p HandlerContext,
    states: &'p States,
    transaction: Option<&'p mut AnyTransaction>,
}

impl<'p> Parts<'p> {
    pub(crate) fn new(
        event: &'p mut (dyn Any + Send),
        context: &'p HandlerContext,
        states: &'p States,
        transaction: Option<&'p mut AnyTransaction>,
    ) -> Self {
        Self { event: Some(event), context, states, transaction }
    }

    /// The context of the delivery.
    #[must_use]
    pub fn context(&self) -> &'p HandlerContext {
        self.context
    }

    /// A provided value.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when none of this type was provided.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>> {
        self.states.state()
    }

    /// A reference to a provided value, for as long as the handler runs.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when none of this type was provided.
    pub fn state_ref<T: Send + Sync + 'static>(&self) -> Result<&'p T> {
        self.states.get_ref().ok_or_else(|| missing_state(std::any::type_name::<T>()))
    }

    /// The transaction handle of type `H`, which only one argument takes.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when the handler runs outside a transaction, or the store lends no `H`.
    pub fn handle<H: 'static>(&mut self) -> Result<&'p mut H> {
        self.transaction
            .take()
            .and_then(|transaction| transaction.lend(TypeId::of::<H>()))
            .and_then(|handle| handle.downcast_mut())
            .ok_or_else(|| {
                Error::configuration(format!(
                    "the store has no transaction handle of type `{}` for this handler",
                    std::any::type_name::<H>()
                ))
            })
    }

    fn slot<E: Any + Send>(&mut self) -> Result<&'p mut Option<Envelope<E>>> {
        self.event
            .take()
            .and_then(|event| event.downcast_mut::<Option<Envelope<E>>>())
            .ok_or_else(|| Error::configuration("this handler takes its event twice: keep one argument of it"))
    }
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("context", &self.context).finish_non_exhaustive()
    }
}

pub(crate) fn missing_state(name: &str) -> Error {
    Error::configuration(format!("no value of type `{name}` was provided: call `.provide(..)` on the bus's builder"))
}

/// What an argument needs from the application, checked when the bus starts.
#[derive(Clone, Copy, Debug)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// The event; one argument takes it.
    Event,
    /// A provided value.
    State(TypeRef),
    /// The provided instance whose method the handler is.
    Instance(TypeRef),
    /// A transaction handle.
    Handle(TypeRef),
}

/// Kind of an ordinary argument. Keeps implementations of [`FromDelivery`] apart.
#[derive(Debug)]
pub enum Part {}
/// Kind of an argument that is the payload itself.
#[derive(Debug)]
pub enum Payload {}
/// Kind of an argument that is a transaction handle of family `F`.
#[derive(Debug)]
pub struct Handle<F>(PhantomData<F>);

/// A type that a handler of event `E` can take as an argument.
///
/// Implement it for an extractor of your own:
///
/// ```
/// use relaybus::{FromDelivery, Parts, Result};
///
/// struct Attempt(u32);
/// impl<'p, E> FromDelivery<'p, E> for Attempt {
///     fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
///         Ok(Attempt(parts.context().attempt()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a consumer of `{E}`",
    label = "not something a delivery of `{E}` can give",
    note = "take the event (`{E}`, `Envelope<{E}>` or a reference to one), `&HandlerContext`, `State<T>`, `CancellationToken` or, in a `transactional` consumer, `&mut` the store's handle",
    note = "a dependency of your own is `State<T>`; for anything else implement `FromDelivery` for it"
)]
pub trait FromDelivery<'p, E, Kind = Part>: Sized {
    /// What it needs from the application. Defaults to nothing.
    const NEEDS: Needs = Needs::Nothing;

    /// Makes the argument.
    ///
    /// # Errors
    /// What stops the handler from being called; the attempt fails with it.
    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self>;
}

/// Stands for the equality of the argument's event and the consumer's, to give a mismatch its own message.
#[diagnostic::on_unimplemented(
    message = "this consumer is for `{E}`, but the argument is an envelope of `{Self}`",
    label = "an envelope of another event"
)]
pub trait SameEvent<E> {}
impl<E> SameEvent<E> for E {}

fn taken() -> Error {
    Error::configuration("this handler takes its event twice: keep one argument of it")
}

impl<'p, E, X: SameEvent<E> + Any + Send> FromDelivery<'p, E> for Envelope<X> {
    const NEEDS: Needs = Needs::Event;

    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        parts.slot::<X>()?.take().ok_or_else(taken)
    }
}

impl<'p, E, X: SameEvent<E> + Any + Send> FromDelivery<'p, E> for &'p Envelope<X> {
    const NEEDS: Needs = Needs::Event;

    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        parts.slot::<X>()?.as_ref().ok_or_else(taken)
    }
}

impl<'p, E: Any + Send> FromDelivery<'p, E, Payload> for E {
    const NEEDS: Needs = Needs::Event;

    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        parts.slot::<E>()?.take().map(|envelope| envelope.payload).ok_or_else(taken)
    }
}

impl<'p, E: Any + Send> FromDelivery<'p, E, Payload> for &'p E {
    const NEEDS: Needs = Needs::Event;

    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        parts.slot::<E>()?.as_ref().map(|envelope| &envelope.payload).ok_or_else(taken)
    }
}

impl<'p, E> FromDelivery<'p, E> for &'p HandlerContext {
    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        Ok(parts.context)
    }
}

impl<'p, E> FromDelivery<'p, E> for CancellationToken {
    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        Ok(parts.context.cancellation())
    }
}

impl<'p, E, T: Send + Sync + 'static> FromDelivery<'p, E> for State<T> {
    const NEEDS: Needs = Needs::State(TypeRef::of::<T>());

    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        parts.state()
    }
}

impl<'p, E, F: Family, H: HandleOf<F> + Any> FromDelivery<'p, E, Handle<F>> for &'p mut H {
    const NEEDS: Needs = Needs::Handle(TypeRef::of::<H>());

    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        parts.handle()
    }
}

/// Checks a handler's arguments together, at compile time; the message is the compiler's.
///
/// # Panics
/// When two arguments take the event, two take a handle, or a handle is taken without `transactional`.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated in a const, the panic is the compiler's message")]
pub(super) const fn check_arguments(needs: &[Needs], transactional: bool) {
    let (mut events, mut handles, mut i) = (0, 0, 0);
    while i < needs.len() {
        match needs[i] {
            Needs::Event => events += 1,
            Needs::Handle(_) => handles += 1,
            Needs::Nothing | Needs::State(_) | Needs::Instance(_) => {}
        }
        i += 1;
    }
    assert!(events <= 1, "this consumer takes its event twice: keep one argument of it");
    assert!(handles <= 1, "this consumer takes two transaction handles: keep one");
    assert!(
        handles == 0 || transactional,
        "this consumer takes a transaction handle: write `transactional` in its attribute, or take the handle out"
    );
}
