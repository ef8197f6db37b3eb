//! The event model: what an event is, its type, its identity and its ordering key.
//!
//! An event is a serde type with a name. `#[derive(Event)]` writes the implementation of [`Event`]; nothing in here
//! does I/O.

mod event_type;
mod id;
mod key;

pub use event_type::EventType;
pub use id::EventId;
pub(crate) use id::EventIds;
pub use key::{KeyValue, OrderingKey, key_of};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BoxError;

/// A typed event: a serde type with a stable name.
///
/// Derive it:
///
/// ```
/// use relaybus::Event;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Event, Serialize, Deserialize)]
/// #[event("order.placed.v1", key = order_id)]
/// struct OrderPlaced {
///     order_id: String,
///     total: u64,
/// }
/// assert_eq!(OrderPlaced::TYPE, "order.placed.v1");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    label = "not an event",
    note = "derive it: `#[derive(relaybus::Event, serde::Serialize, serde::Deserialize)] #[event(\"order.placed.v1\")]`"
)]
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name that is stored and sent: 1 to 255 characters of `A-Za-z0-9 . _ : / -`, checked at compile time.
    const TYPE: EventType;

    /// Where the ordering key comes from, as `#[event(key = ..)]` says it: `order_id`. People and the snapshots of catalogs
    /// read it; the key itself is [`Event::ordering_key`]'s. Written by hand it belongs to an `ordering_key` of one's own.
    ///
    /// Defaults to none.
    const KEY: Option<&'static str> = None;

    /// The ordering key of this event: events of one key are handled one at a time and in commit order.
    ///
    /// Defaults to no key.
    ///
    /// # Errors
    /// An empty key is an error, and so is one of a text that cannot be stored.
    fn ordering_key(&self) -> crate::Result<Option<OrderingKey>> {
        Ok(None)
    }

    /// Checks what the type cannot say. It runs when the event is published and after it was decoded.
    ///
    /// Defaults to accepting everything.
    ///
    /// # Errors
    /// What is wrong with the payload; it becomes `RELAYBUS_EVENT_VALIDATION`, which is never retried.
    fn validate(&self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// What a function or closure of an attribute makes of an event, for generated code: the closure's parameter gets its type
/// from here.
pub fn apply<'e, T, A>(event: &'e T, function: impl FnOnce(&'e T) -> A) -> A {
    function(event)
}

/// The answer of a validation function, for generated code.
///
/// # Errors
/// The function's.
pub fn validated<E: Into<BoxError>>(answer: Result<(), E>) -> Result<(), BoxError> {
    answer.map_err(Into::into)
}
