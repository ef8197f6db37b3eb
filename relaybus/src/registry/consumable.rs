//! What a handler can handle: an event, or a whole catalog.

use std::any::Any;

use super::entry::type_name_of;
use crate::catalog::HashedType;
use crate::envelope::{Envelope, RawPayload};
use crate::error::Result;
use crate::event::Event;

/// What a handler handles: an event, or the events of a catalog under one id, so that their order holds across types. Not
/// implemented by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    label = "not an event",
    note = "derive it: `#[derive(relaybus::Event, serde::Serialize, serde::Deserialize)] #[event(\"order.placed.v1\")]`",
    note = "a consumer of several events names an enum of them with `#[relaybus::catalog]`"
)]
pub trait Consumable: Any + Send + Sync + Sized {
    /// The event type, or the name of the catalog.
    const SHOWN: &'static str;
    /// The event types.
    const TYPES: &'static [HashedType];

    /// Decodes an event of one of the types.
    ///
    /// # Errors
    /// `RELAYBUS_EVENT_VALIDATION` when it is of another type, or its payload does not decode or is not valid.
    fn decode_from(envelope: &Envelope<RawPayload>) -> Result<Envelope<Self>>;
}

#[diagnostic::do_not_recommend]
impl<E: Event> Consumable for E {
    const SHOWN: &'static str = type_name_of::<E>();
    const TYPES: &'static [HashedType] = &[HashedType::of::<E>()];

    fn decode_from(envelope: &Envelope<RawPayload>) -> Result<Envelope<Self>> {
        envelope.decode()
    }
}
