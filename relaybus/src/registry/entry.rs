//! The entry of a handler: everything the bus needs to know, in a constant.

use std::any::Any;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::consumable::Consumable;
use super::extract::{Needs, Parts, check_arguments};
use crate::catalog::HashedType;
use crate::envelope::{Envelope, RawPayload};
use crate::error::Result;
use crate::event::Event;
use crate::retry::RetryOverrides;
use crate::store::{Family, Lends};

/// Decodes an event into the slot that the handler's arguments take it from: an `Option<Envelope<E>>`.
pub type DecodeFn = fn(&Envelope<RawPayload>) -> Result<Box<dyn Any + Send>>;

/// Takes the handler's arguments from the parts and returns its future.
pub type CallFn = for<'p> fn(&mut Parts<'p>) -> Result<BoxFuture<'p, Result<()>>>;

/// A handler as the registry keeps it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The handler's id.
    pub id: &'static str,
    /// The type of its event, or the name of its catalog.
    pub event: &'static str,
    /// The types of the events it handles: several for a consumer of a catalog.
    pub events: &'static [HashedType],
    /// What its arguments need.
    pub needs: &'static [Needs],
    /// Whether it runs in a transaction that also completes its delivery.
    pub transactional: bool,
    /// Its own settings.
    pub options: ConsumerOptions,
    /// Decodes its event.
    pub decode: DecodeFn,
    /// Calls it.
    pub call: CallFn,
    /// Where it is written: `path:line`.
    pub location: &'static str,
}

impl Entry {
    /// The entry of the handler that `H` stands for.
    #[must_use]
    pub const fn of<H: Handler>() -> Self {
        Self {
            id: H::ID,
            event: H::Event::SHOWN,
            events: H::Event::TYPES,
            needs: H::NEEDS,
            transactional: H::TRANSACTIONAL,
            options: H::OPTIONS,
            decode: decode_any::<H::Event>,
            call: H::call,
            location: H::LOCATION,
        }
    }

    /// What constants fill arrays with before they know better.
    pub(crate) const NOTHING: Self = Self {
        id: "",
        event: "",
        events: &[],
        needs: &[],
        transactional: false,
        options: ConsumerOptions::NONE,
        decode: |_| Ok(Box::new(())),
        call: |_| Ok(Box::pin(std::future::ready(Ok(())))),
        location: "",
    };
}

/// Event types of derived events are always `'static`.
pub(crate) const fn type_name_of<E: Event>() -> &'static str {
    let event_type = E::TYPE;
    let name = event_type.static_name();
    // A constant cannot run a destructor, and a static name has nothing to free.
    std::mem::forget(event_type);
    name
}

inventory::collect!(Entry);

/// What the macros implement for the companion type of a handler function. Not implemented by hand.
pub trait Handler: 'static {
    /// The event it handles, or the catalog.
    type Event: Consumable;
    /// Its id.
    const ID: &'static str;
    /// What its arguments need.
    const NEEDS: &'static [Needs];
    /// Whether it runs in a transaction that also completes its delivery.
    const TRANSACTIONAL: bool;
    /// Its own settings.
    const OPTIONS: ConsumerOptions;
    /// Where it is written.
    const LOCATION: &'static str;
    /// Takes its arguments and returns its future.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when something it needs is not there.
    fn call<'p>(parts: &mut Parts<'p>) -> Result<BoxFuture<'p, Result<()>>>;
}

/// What `handlers![..]` can name: a function with `#[consumer]` or a type with `#[consumers]`. Not implemented by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a consumer",
    label = "expected a function with `#[consumer(..)]` or a type with `#[consumers]`"
)]
pub trait Consumers: 'static {
    /// The transaction handles that they take, as nested pairs: `(A, (B, ()))`.
    type Handles;
    /// Its handlers.
    const ENTRIES: &'static [Entry];
}

/// A list of nested pairs whose handles the stores of family `F` lend.
pub trait LentBy<F> {}
impl<F: Family> LentBy<F> for () {}
impl<F: Lends<H>, H, L: LentBy<F>> LentBy<F> for (H, L) {}

/// Checks a handler at compile time; the message is the compiler's.
///
/// # Panics
/// When two arguments take the event, two take a handle, a handle is taken without `transactional`, or the default id
/// is longer than 255 bytes or has a `#`, as a path with raw names has.
#[track_caller]
pub const fn check<H: Handler>() {
    check_arguments(H::NEEDS, H::TRANSACTIONAL);
    check_default_id(H::ID.as_bytes());
}

#[track_caller]
#[allow(clippy::panic, reason = "evaluated in a const, the panic is the compiler's message")]
const fn check_default_id(id: &[u8]) {
    assert!(
        id.len() <= 255,
        "the default id of this consumer, its path, is longer than 255 bytes: give it one with `id`"
    );
    let mut i = 0;
    while i < id.len() {
        assert!(id[i] != b'#', "the default id of this consumer, its path, has a `#`: give it one with `id`");
        i += 1;
    }
}

/// Decodes an event of type `E`: one instance an event type, whatever the number of its handlers.
///
/// # Errors
/// `RELAYBUS_EVENT_VALIDATION` when the payload does not decode or is not valid.
pub fn decode_any<E: Consumable>(envelope: &Envelope<RawPayload>) -> Result<Box<dyn Any + Send>> {
    Ok(Box::new(Some(E::decode_from(envelope)?)))
}

/// The settings a handler was written with; what it leaves out comes from the bus.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConsumerOptions {
    /// Its retry settings.
    pub retry: RetryOverrides,
    /// Its timeout.
    pub timeout: Option<SetTimeout>,
    /// Most runs of it at once in this process.
    pub concurrency: Option<usize>,
    /// How runs of one key go on.
    pub order: Order,
}

impl ConsumerOptions {
    /// Nothing set.
    pub const NONE: Self = Self { retry: RetryOverrides::NONE, timeout: None, concurrency: None, order: Order::Strict };

    /// Settings as the macros write them.
    #[must_use]
    pub const fn new(
        retry: RetryOverrides,
        timeout: Option<SetTimeout>,
        concurrency: Option<usize>,
        order: Order,
    ) -> Self {
        Self { retry, timeout, concurrency, order }
    }
}

/// A timeout that was set: some time, or explicitly none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTimeout {
    /// The handler's future is dropped after this time and the attempt fails.
    After(Duration),
    /// No timeout, whatever the bus's default.
    Never,
}

/// How the deliveries of one key follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The next one starts when the completion of the one before is durable. The default.
    #[default]
    Strict,
    /// The next one may start before that. After a crash up to a run's length of events of the key run again, in order,
    /// from the first that was not durable: for handlers that replace state rather than add to it.
    Replay,
}
