//! Handlers that are closures: what `subscribe` takes.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::handlers::{DynCall, Given, Kind};
use crate::context::HandlerContext;
use crate::envelope::Envelope;
use crate::error::Result;
use crate::event::Event;
use crate::registry::{
    ConsumerOptions, FromDelivery, HandlerOutput, Needs, Order, Parts, SetTimeout, boxed, decode_any,
};
use crate::retry::RetryOverrides;
use crate::store::{AnyTransaction, TypeRef};

/// A handler made of a closure, with its settings.
///
/// ```
/// # use relaybus::{Envelope, Event, Subscribe};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Event, Serialize, Deserialize)] #[event("order.placed.v1")] struct OrderPlaced { order_id: String }
/// let log = Subscribe::to("orders.log", |event: Envelope<OrderPlaced>, context| async move {
///     println!("{} attempt {}", event.payload.order_id, context.attempt());
/// })
/// .concurrency(4);
/// ```
pub struct Subscribe {
    pub(crate) given: Given,
}

impl std::fmt::Debug for Subscribe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscribe").field("id", &self.given.id).finish_non_exhaustive()
    }
}

impl Subscribe {
    /// The handler `id` runs `handler` for each event of type `E`.
    pub fn to<E, F, Fut>(id: impl Into<String>, handler: F) -> Self
    where
        E: Event,
        F: Fn(Envelope<E>, HandlerContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: HandlerOutput> + Send + 'static,
    {
        let call: DynCall = Arc::new(move |parts: &mut Parts<'_>| {
            let event = <Envelope<E> as FromDelivery<'_, E>>::from_delivery(parts)?;
            Ok(boxed::<Fut::Output, _>(handler(event, parts.context().clone())))
        });
        Self::with_call::<E>(id.into(), call, Vec::new(), false)
    }

    /// The handler `id` runs `handler` in a transaction of the store, which also completes the delivery.
    ///
    /// ```
    /// # use relaybus::{AnyTransaction, Envelope, Event, HandlerContext, Subscribe};
    /// # use futures_util::future::BoxFuture;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Event, Serialize, Deserialize)] #[event("order.placed.v1")] struct OrderPlaced { order_id: String }
    /// fn record<'a>(event: Envelope<OrderPlaced>, tx: &'a mut AnyTransaction, _: &'a HandlerContext) -> BoxFuture<'a, relaybus::Result> {
    ///     Box::pin(async move { Ok(()) })
    /// }
    /// let record = Subscribe::transactional("orders.record", record);
    /// ```
    pub fn transactional<E, F>(id: impl Into<String>, handler: F) -> Self
    where
        E: Event,
        F: for<'a> Fn(Envelope<E>, &'a mut AnyTransaction, &'a HandlerContext) -> BoxFuture<'a, Result<()>>
            + Send
            + Sync
            + 'static,
    {
        let call: DynCall = Arc::new(move |parts: &mut Parts<'_>| {
            let event = <Envelope<E> as FromDelivery<'_, E>>::from_delivery(parts)?;
            let transaction = <&mut AnyTransaction as FromDelivery<'_, E, _>>::from_delivery(parts)?;
            Ok(handler(event, transaction, parts.context()))
        });
        Self::with_call::<E>(id.into(), call, vec![Needs::Handle(TypeRef::of::<AnyTransaction>())], true)
    }

    fn with_call<E: Event>(id: String, call: DynCall, needs: Vec<Needs>, transactional: bool) -> Self {
        let given = Given {
            id,
            event_types: vec![E::TYPE],
            needs,
            transactional,
            options: ConsumerOptions::NONE,
            kind: Kind::Closure { decode: decode_any::<E>, call },
            location: "",
        };
        Self { given }
    }

    /// Retry settings; the rest comes from the bus.
    #[must_use]
    pub fn retry(mut self, retry: RetryOverrides) -> Self {
        self.given.options.retry = retry;
        self
    }

    /// The handler's future is dropped after this time and the attempt fails. Defaults to the bus's.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.given.options.timeout = Some(SetTimeout::After(timeout));
        self
    }

    /// No timeout, whatever the bus's default.
    #[must_use]
    pub fn without_timeout(mut self) -> Self {
        self.given.options.timeout = Some(SetTimeout::Never);
        self
    }

    /// Most runs of it at once in this process. Defaults to the dispatcher's concurrency.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.given.options.concurrency = Some(concurrency);
        self
    }

    /// How runs of one key go on. Defaults to [`Order::Strict`].
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.given.options.order = order;
        self
    }
}
