//! Wire names: the names that some wire formats have for event types.

use super::Catalog;
use crate::event::EventType;

/// The name under which a transport sends events of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireType {
    /// The event type.
    pub event_type: EventType,
    /// Its name on the wire.
    pub name: String,
}

/// Applies wire names that a transport has checked; called once, when nothing else stops the bus from being built.
pub type ApplyWireTypes = Box<dyn FnOnce() + Send>;

/// The wire names of a catalog, for the codec of a service that only consumes it and so has no route to declare them.
///
/// ```
/// # use relaybus::{Event, catalog};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
/// #[catalog]
/// enum OrderEvents {
///     #[wire("Order Placed")]
///     OrderPlaced(OrderPlaced),
/// }
/// let names = relaybus::catalog::wire_types::<OrderEvents>();
/// assert_eq!((names[0].event_type.as_str(), names[0].name.as_str()), ("order.placed.v1", "Order Placed"));
/// ```
#[must_use]
pub fn wire_types<C: Catalog>() -> Vec<WireType> {
    let named = C::EVENTS.iter().filter_map(|event| Some((event.event_type, event.wire?)));
    named.map(|(event, name)| WireType { event_type: EventType::from_static(event), name: name.to_owned() }).collect()
}
