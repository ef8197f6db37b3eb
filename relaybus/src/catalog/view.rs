//! Views: a bus that publishes the events of one catalog and no others.

use std::marker::PhantomData;

use super::{Catalog, Includes, MemberOf, SubsetOf};
use crate::bus::RelayBus;
use crate::event::Event;
use crate::publish::{EventBatch, Publish, PublishAll};
use crate::store::{EventStore, HandleOf};

/// A bus that publishes the events of the catalog `C` and no others: made by `RelayBus::for_catalog`.
///
/// ```
/// # use relaybus::{Event, MemoryStore, RelayBus, Result, catalog};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.shipped.v1")] struct OrderShipped {}
/// # #[catalog] enum OrderEvents { OrderPlaced(OrderPlaced), OrderShipped(OrderShipped) }
/// # async fn example(bus: RelayBus<MemoryStore>) -> Result {
/// let orders = bus.for_catalog::<OrderEvents>();
/// bus.transaction(async |tx| -> Result {
///     orders.publish(tx, OrderPlaced {}).await?;
///     orders.publish_all(tx, [OrderEvents::from(OrderPlaced {}), OrderShipped {}.into()]).await?;
///     Ok(())
/// })
/// .await
/// # }
/// ```
pub struct CatalogView<C, S: EventStore> {
    bus: RelayBus<S>,
    catalog: PhantomData<fn() -> C>,
}

impl<C: Catalog, S: EventStore> CatalogView<C, S> {
    pub(crate) fn new(bus: RelayBus<S>) -> Self {
        Self { bus, catalog: PhantomData }
    }

    /// As [`RelayBus::publish`], for events of the catalog.
    pub fn publish<'a, H, E>(&'a self, tx: &'a mut H, event: E) -> Publish<'a, S>
    where
        H: HandleOf<S::Family> + ?Sized,
        E: MemberOf<C>,
    {
        self.bus.publish(tx, event)
    }

    /// As [`RelayBus::publish_all`], for values of the catalog's enum or of one of its events.
    pub fn publish_all<'a, H, I>(&'a self, tx: &'a mut H, events: I) -> PublishAll<'a, S>
    where
        H: HandleOf<S::Family> + ?Sized,
        I: IntoIterator<Item: Into<C>>,
    {
        self.bus.publish_all(tx, batch(events))
    }

    /// As [`RelayBus::publish_detached`], for events of the catalog.
    pub fn publish_detached<E: MemberOf<C>>(&self, event: E) -> Publish<'_, S> {
        self.bus.publish_detached(event)
    }

    /// As [`RelayBus::publish_all_detached`], for values of the catalog's enum or of one of its events.
    pub fn publish_all_detached<I: IntoIterator<Item: Into<C>>>(&self, events: I) -> PublishAll<'_, S> {
        self.bus.publish_all_detached(batch(events))
    }

    /// A view of these events of the catalog: a tuple of event types, or a catalog with `#[catalog(of = C)]`.
    #[must_use]
    pub fn only<L: SubsetOf<C>>(&self) -> SubsetView<L, S> {
        const { distinct(L::TYPES) };
        SubsetView { bus: self.bus.clone(), list: PhantomData }
    }
}

#[track_caller]
const fn distinct(types: &[super::HashedType]) {
    let mut i = 0;
    while i < types.len() {
        let mut j = 0;
        while j < i {
            assert!(!types[i].is(&types[j]), "a view lists an event twice: keep one");
            j += 1;
        }
        i += 1;
    }
}

fn batch<C: Catalog>(events: impl IntoIterator<Item: Into<C>>) -> EventBatch {
    let mut batch = EventBatch::new();
    for event in events {
        event.into().add_to(&mut batch);
    }
    batch
}

impl<C, S: EventStore> Clone for CatalogView<C, S> {
    fn clone(&self) -> Self {
        Self { bus: self.bus.clone(), catalog: PhantomData }
    }
}

impl<C: Catalog, S: EventStore> std::fmt::Debug for CatalogView<C, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatalogView").field("catalog", &C::NAME).finish_non_exhaustive()
    }
}

/// A bus that publishes the events in the list `L` and no others: made by [`CatalogView::only`].
pub struct SubsetView<L, S: EventStore> {
    bus: RelayBus<S>,
    list: PhantomData<fn() -> L>,
}

impl<L, S: EventStore> SubsetView<L, S> {
    /// As [`RelayBus::publish`], for events of the list.
    pub fn publish<'a, H, E, I>(&'a self, tx: &'a mut H, event: E) -> Publish<'a, S>
    where
        H: HandleOf<S::Family> + ?Sized,
        E: Event,
        L: Includes<E, I>,
    {
        self.bus.publish(tx, event)
    }

    /// As [`RelayBus::publish_all`], for events of one type of the list.
    pub fn publish_all<'a, H, E, I>(&'a self, tx: &'a mut H, events: impl IntoIterator<Item = E>) -> PublishAll<'a, S>
    where
        H: HandleOf<S::Family> + ?Sized,
        E: Event,
        L: Includes<E, I>,
    {
        self.bus.publish_all(tx, events.into_iter().collect::<EventBatch>())
    }

    /// As [`RelayBus::publish_detached`], for events of the list.
    pub fn publish_detached<E: Event, I>(&self, event: E) -> Publish<'_, S>
    where
        L: Includes<E, I>,
    {
        self.bus.publish_detached(event)
    }

    /// As [`RelayBus::publish_all_detached`], for events of one type of the list.
    pub fn publish_all_detached<E, I>(&self, events: impl IntoIterator<Item = E>) -> PublishAll<'_, S>
    where
        E: Event,
        L: Includes<E, I>,
    {
        self.bus.publish_all_detached(events.into_iter().collect::<EventBatch>())
    }

    /// A batch for events of all types of the list.
    ///
    /// ```
    /// # use relaybus::{Event, MemoryStore, RelayBus, Result, catalog};
    /// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
    /// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.cancelled.v1")] struct OrderCancelled {}
    /// # #[catalog] enum OrderEvents { OrderPlaced(OrderPlaced), OrderCancelled(OrderCancelled) }
    /// # async fn example(bus: RelayBus<MemoryStore>) -> Result {
    /// let orders = bus.for_catalog::<OrderEvents>().only::<(OrderPlaced, OrderCancelled)>();
    /// let events = orders.batch().with(OrderPlaced {}).with(OrderCancelled {});
    /// bus.transaction(async |tx| -> Result {
    ///     orders.publish_batch(tx, events).await?;
    ///     Ok(())
    /// })
    /// .await
    /// # }
    /// ```
    #[must_use]
    pub fn batch(&self) -> SubsetBatch<L> {
        SubsetBatch { events: EventBatch::new(), list: PhantomData }
    }

    /// As [`RelayBus::publish_all`], for a batch of this list.
    pub fn publish_batch<'a, H>(&'a self, tx: &'a mut H, batch: SubsetBatch<L>) -> PublishAll<'a, S>
    where
        H: HandleOf<S::Family> + ?Sized,
    {
        self.bus.publish_all(tx, batch.events)
    }

    /// As [`RelayBus::publish_all_detached`], for a batch of this list.
    pub fn publish_batch_detached(&self, batch: SubsetBatch<L>) -> PublishAll<'_, S> {
        self.bus.publish_all_detached(batch.events)
    }
}

/// Events of the list `L` and no others, in the order in which they were added: made by [`SubsetView::batch`].
pub struct SubsetBatch<L> {
    events: EventBatch,
    list: PhantomData<fn() -> L>,
}

impl<L> SubsetBatch<L> {
    /// Adds an event.
    #[must_use]
    pub fn with<E: Event, I>(mut self, event: E) -> Self
    where
        L: Includes<E, I>,
    {
        self.push(&event);
        self
    }

    /// Adds an event.
    pub fn push<E: Event, I>(&mut self, event: &E)
    where
        L: Includes<E, I>,
    {
        self.events.push(event);
    }

    /// How many events it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl<L> std::fmt::Debug for SubsetBatch<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubsetBatch").field("events", &self.len()).finish_non_exhaustive()
    }
}

impl<L, S: EventStore> Clone for SubsetView<L, S> {
    fn clone(&self) -> Self {
        Self { bus: self.bus.clone(), list: PhantomData }
    }
}

impl<L, S: EventStore> std::fmt::Debug for SubsetView<L, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubsetView").field("events", &std::any::type_name::<L>()).finish_non_exhaustive()
    }
}
