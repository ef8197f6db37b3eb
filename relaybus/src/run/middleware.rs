//! Middleware: `tower` layers around every handler.
//!
//! Without a layer a handler is called directly. With layers each attempt becomes a [`HandlerCall`] that travels through
//! them, and its own future with it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};

use super::guarded::guarded_sync;
use crate::bus::{HandlerSpec, Kind};
use crate::context::HandlerContext;
use crate::envelope::{Envelope, RawPayload};
use crate::error::{Error, Result};
use crate::registry::{Parts, States};
use crate::store::AnyTransaction;

/// One attempt on its way through the layers: what a layer may look at, and the call itself.
pub struct HandlerCall {
    /// The event.
    pub event: Arc<Envelope<RawPayload>>,
    /// The delivery.
    pub context: HandlerContext,
    spec: Arc<HandlerSpec>,
    states: Arc<States>,
    transaction: TransactionSlot,
}

/// The transaction travels with the call and comes back for the commit. It is taken while the handler runs.
pub(crate) type TransactionSlot = Arc<Mutex<Option<AnyTransaction>>>;

impl HandlerCall {
    pub(crate) fn new(
        event: Arc<Envelope<RawPayload>>,
        context: HandlerContext,
        spec: Arc<HandlerSpec>,
        states: Arc<States>,
        transaction: TransactionSlot,
    ) -> Self {
        Self { event, context, spec, states, transaction }
    }

    async fn run(self) -> Result<()> {
        // Decoding first: a layer that makes do without the handler's success still has its transaction.
        let mut slot = guarded_sync(|| self.spec.kind.decode(&self.event))?;
        let mut transaction = self.transaction.lock().unwrap_or_else(PoisonError::into_inner).take();
        let result = call(&self.spec, slot.as_mut(), &self.context, &self.states, transaction.as_mut()).await;
        *self.transaction.lock().unwrap_or_else(PoisonError::into_inner) = transaction;
        result
    }
}

impl fmt::Debug for HandlerCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerCall").field("context", &self.context).finish_non_exhaustive()
    }
}

/// Takes a local handler's arguments and returns its future.
pub(crate) fn call<'p>(
    spec: &'p HandlerSpec,
    slot: &'p mut (dyn Any + Send),
    context: &'p HandlerContext,
    states: &'p States,
    transaction: Option<&'p mut AnyTransaction>,
) -> BoxFuture<'p, Result<()>> {
    let mut parts = Parts::new(slot, context, states, transaction);
    let made = guarded_sync(|| match &spec.kind {
        Kind::Entry { call, .. } => call(&mut parts),
        Kind::Closure { call, .. } => call(&mut parts),
        Kind::Route { .. } => Err(Error::configuration("a route has no arguments")),
    });
    made.unwrap_or_else(|error| Box::pin(std::future::ready(Err(error))))
}

/// The innermost service: it calls the handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandlerService;

impl Service<HandlerCall> for HandlerService {
    type Response = ();
    type Error = Error;
    type Future = BoxFuture<'static, Result<()>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: HandlerCall) -> Self::Future {
        Box::pin(call.run())
    }
}

/// The layers of a bus around [`HandlerService`].
#[derive(Clone)]
pub(crate) struct Middleware(BoxCloneSyncService<HandlerCall, (), Error>);

impl Middleware {
    /// `layer` around `inner`, or around the handler itself.
    pub(crate) fn around<L>(inner: Option<Self>, layer: L) -> Self
    where
        L: Layer<BoxCloneSyncService<HandlerCall, (), Error>>,
        L::Service: Service<HandlerCall, Response = (), Error: Into<crate::BoxError>> + Clone + Send + Sync + 'static,
        <L::Service as Service<HandlerCall>>::Future: Send + 'static,
    {
        let inner = inner.map_or_else(|| BoxCloneSyncService::new(HandlerService), |middleware| middleware.0);
        let service = layer.layer(inner).map_err(|error| Error::of_handler(error.into()));
        Self(BoxCloneSyncService::new(service))
    }

    pub(crate) fn call(&self, call: HandlerCall) -> BoxFuture<'static, Result<()>> {
        Box::pin(self.0.clone().oneshot(call))
    }
}

impl fmt::Debug for Middleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Middleware")
    }
}
