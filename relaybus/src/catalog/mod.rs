//! Catalogs at run time: the events of one domain as a type, so that the compiler and the boot tell of the event nobody
//! handles before production does.
//!
//! A catalog is an enum with `#[catalog]`. Its constants name its events ([`Catalog::EVENTS`]); a handler trait with one
//! method an event is generated beside it and registered through [`HandledBy`]; a [`CatalogView`] publishes its events and
//! no others; a [`Role`] says what this service does with it, and a [`Contract`] what one module does. What types cannot
//! see is checked when the bus starts, before any I/O.
//!
//! ```
//! use relaybus::{Envelope, Event, HandlerContext, HandlerResult, MemoryStore, RelayBus, Result, catalog, consumers, handlers};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Event, Serialize, Deserialize)]
//! #[event("order.placed.v1", key = order_id)]
//! pub struct OrderPlaced {
//!     order_id: String,
//! }
//! #[derive(Event, Serialize, Deserialize)]
//! #[event("order.shipped.v1", key = order_id)]
//! pub struct OrderShipped {
//!     order_id: String,
//!     carrier: String,
//! }
//!
//! #[catalog]
//! pub enum OrderEvents {
//!     OrderPlaced(OrderPlaced),
//!     OrderShipped(OrderShipped),
//! }
//!
//! struct Shipping;
//!
//! #[consumers(OrderEvents)]
//! impl OrderEventsHandlers for Shipping {
//!     async fn on_order_placed(&self, event: &Envelope<OrderPlaced>, _: &HandlerContext) -> HandlerResult {
//!         println!("reserve stock for {}", event.payload.order_id);
//!         Ok(())
//!     }
//!     async fn on_order_shipped(&self, event: &Envelope<OrderShipped>, _: &HandlerContext) -> HandlerResult {
//!         println!("tell the customer that {} has it", event.payload.carrier);
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result {
//! let bus = RelayBus::builder(MemoryStore::new())
//!     .handlers(handlers![Shipping])
//!     .provide(Shipping)
//!     .catalog(catalog::<OrderEvents>())
//!     .build()?;
//! bus.start().await?;
//! let orders = bus.for_catalog::<OrderEvents>();
//! orders.publish_detached(OrderPlaced { order_id: "o-1".to_owned() }).await?;
//! # bus.stop().await?;
//! # Ok(())
//! # }
//! ```

mod boot;
mod contract;
mod handled;
mod member;
mod meta;
mod role;
mod route;
#[cfg(feature = "schema")]
pub mod schema;
mod subscribe;
mod table;
mod text;
#[cfg(not(feature = "schema"))]
pub(crate) mod undescribed;
mod view;
mod wire;

pub(crate) use boot::Declarations;
pub use contract::{Contract, ContractPart, Module, belongs, consumes};
pub use handled::{
    CatalogEntry, CatalogId, Directly, EntryGroup, HandledBy, HandlerResult, InTransaction, arguments, arguments_in,
    entries, ids,
};
pub use member::{ByCatalog, Includes, MemberOf, SubsetOf};
pub use meta::{EventMeta, HashedType};
pub use role::{CatalogRole, Consume, Either, Produce, Role, RoleKind, catalog, consume, produce};
pub use route::{CatalogRoute, Routes};
pub(crate) use route::{check_routes, declare_wire_types};
pub use subscribe::CatalogOptions;
pub use table::{CatalogTable, TypeTable, catalog_slots, consumed_slots, handled_slots};
pub use view::{CatalogView, SubsetBatch, SubsetView};
pub use wire::{ApplyWireTypes, WireType, wire_types};

use crate::envelope::{Envelope, RawPayload};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::publish::EventBatch;
use crate::registry::Consumable;

/// The events of one domain, as an enum with one variant an event. `#[catalog]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a catalog",
    label = "expected an enum with `#[catalog]`",
    note = "write `#[relaybus::catalog]` on an enum of events: `enum OrderEvents {{ OrderPlaced(OrderPlaced) }}`"
)]
pub trait Catalog: Consumable {
    /// Its name: the enum's, unless `#[catalog(name = "..")]` gives another one. The default prefix of handler ids.
    const NAME: &'static str;
    /// Its events, in the order of the enum.
    const EVENTS: &'static [EventMeta];

    /// Decodes an event into the variant of its type.
    ///
    /// # Errors
    /// `RELAYBUS_EVENT_VALIDATION` when the catalog has no event of the type, or the payload does not decode or is not
    /// valid.
    fn decode(envelope: &Envelope<RawPayload>) -> Result<Envelope<Self>> {
        Self::decode_from(envelope)
    }

    /// Adds the event to a batch.
    fn add_to(&self, batch: &mut EventBatch);
}

/// Decodes an event of a catalog into its variant, for generated code; nothing when it is of another type.
///
/// # Errors
/// `RELAYBUS_EVENT_VALIDATION` when the payload does not decode or is not valid.
pub fn decode_as<C, E: MemberOf<C>>(
    envelope: &Envelope<RawPayload>,
    variant: fn(E) -> C,
) -> Result<Option<Envelope<C>>> {
    if envelope.event_type != <E as Event>::TYPE {
        return Ok(None);
    }
    envelope.decode::<E>().map(|event| Some(event.map(variant)))
}

/// The refusal of an event that the catalog does not have, for generated code.
#[must_use]
pub fn not_in_catalog<C: Catalog>(envelope: &Envelope<RawPayload>) -> Error {
    Error::EventValidation {
        event_type: envelope.event_type.clone(),
        reason: format!("the catalog `{}` has no event of this type", C::NAME),
        source: None,
    }
}

/// Adds an event of a catalog to a batch, for generated code.
pub fn add_member<C, E: MemberOf<C>>(batch: &mut EventBatch, event: &E) {
    batch.push(event);
}

/// Checks that a variant's event type is no earlier variant's, at compile time; the message is the compiler's.
///
/// # Panics
/// When two events of the catalog have one type.
#[track_caller]
pub const fn distinct<C: Catalog, const N: usize>(variant: &'static str, table: &CatalogTable<N>) {
    if let Some((place, first)) = table.places::<C>(variant)
        && first < place
    {
        meta::refuse_type(&C::EVENTS[place], &C::EVENTS[first]);
    }
}

/// Checks that a variant's wire name is no other event's type, at compile time; the message is the compiler's.
///
/// # Panics
/// When the wire name is the type of another event of the catalog.
#[track_caller]
pub const fn distinct_wire<C: Catalog>(variant: &str, wire: &str) {
    let mut i = 0;
    while i < C::EVENTS.len() {
        let event = &C::EVENTS[i];
        if !meta::same(event.name, variant) && event.wire.is_none() {
            meta::check_wire(event, wire);
        }
        i += 1;
    }
}
