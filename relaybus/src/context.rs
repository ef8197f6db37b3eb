//! What a handler is told about the delivery it runs.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{EventId, OrderingKey};
use crate::handler_id::HandlerId;
use crate::registry::{State, States};
use crate::run::CancelSource;
use crate::store::{DeliveryId, Lease, LeaseToken};

/// The delivery that a handler runs: its attempt, its identity and its cancellation.
pub struct HandlerContext {
    lease: Lease,
    attempt: u32,
    max_attempts: Option<u32>,
    stored_at: Timestamp,
    session: Arc<CancelSource>,
    states: Arc<States>,
    /// Shared by the clones of this context: they are made with it.
    token: OnceLock<CancellationToken>,
}

impl HandlerContext {
    pub(crate) fn new(
        lease: Lease,
        attempt: u32,
        max_attempts: Option<u32>,
        stored_at: Timestamp,
        session: Arc<CancelSource>,
        states: Arc<States>,
    ) -> Self {
        Self { lease, attempt, max_attempts, stored_at, session, states, token: OnceLock::new() }
    }

    /// The handler's id.
    #[must_use]
    pub fn handler(&self) -> &HandlerId {
        &self.lease.handler
    }

    /// The event's id.
    #[must_use]
    pub fn event_id(&self) -> &EventId {
        &self.lease.event_id
    }

    /// The event's ordering key.
    #[must_use]
    pub fn key(&self) -> Option<&OrderingKey> {
        self.lease.key.as_ref()
    }

    /// The delivery's name.
    #[must_use]
    pub fn delivery_id(&self) -> DeliveryId {
        self.lease.delivery_id()
    }

    /// A text that is the same for every attempt of this delivery and of no other: send it to systems that deduplicate.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        self.delivery_id().to_string()
    }

    /// The number of this attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The limit of attempts; `None` without one.
    #[must_use]
    pub fn max_attempts(&self) -> Option<u32> {
        self.max_attempts
    }

    /// Whether a failure of this attempt would bury the delivery.
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.max_attempts.is_some_and(|max| self.attempt >= max)
    }

    /// Whether the delivery may have run before: an earlier claim of it ended without completing it.
    #[must_use]
    pub fn redelivered(&self) -> bool {
        self.lease.token.claims > 0
    }

    /// The fencing token of this claim. Its last part rises with every claim of this delivery, so a system that
    /// remembers the highest one it saw can refuse an older run.
    #[must_use]
    pub fn fencing_token(&self) -> LeaseToken {
        self.lease.token
    }

    /// When the event was stored.
    #[must_use]
    pub fn stored_at(&self) -> Timestamp {
        self.stored_at
    }

    /// A value that was given to the bus with `provide`, or the bus: `context.state::<RelayBus>()`. For the methods of catalogs
    /// and for closures, whose arguments are fixed; others take `State<T>`, whose absence stops the bus from starting.
    ///
    /// ```
    /// # use relaybus::{AnyTransaction, Envelope, Event, HandlerContext, HandlerResult, RelayBus, catalog};
    /// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] pub struct OrderPlaced {}
    /// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.billed.v1")] struct OrderBilled {}
    /// # #[catalog] pub enum OrderEvents { OrderPlaced(OrderPlaced) }
    /// # struct Billing;
    /// impl OrderEventsTxHandlers<AnyTransaction> for Billing {
    ///     async fn on_order_placed(
    ///         &self,
    ///         _: &Envelope<OrderPlaced>,
    ///         tx: &mut AnyTransaction,
    ///         context: &HandlerContext,
    ///     ) -> HandlerResult {
    ///         context.state::<RelayBus>()?.publish(tx, OrderBilled {}).await?;
    ///         Ok(())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when none of this type was provided.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>> {
        self.states.state()
    }

    /// Cancelled when the handler's time is up, its lease is lost or the bus stops. The handler's future is dropped
    /// then; hand this to what the handler spawned, or look at it in a handler that blocks its thread.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.token.get_or_init(|| self.session.token.child_token()).clone()
    }

    /// Cancels what still holds the token. Nobody can ask for one any more: the handler has been dropped.
    pub(crate) fn cancel(&self) {
        if let Some(token) = self.token.get() {
            token.cancel();
        }
    }
}

impl Clone for HandlerContext {
    fn clone(&self) -> Self {
        Self {
            lease: self.lease.clone(),
            attempt: self.attempt,
            max_attempts: self.max_attempts,
            stored_at: self.stored_at,
            session: self.session.clone(),
            states: self.states.clone(),
            token: OnceLock::from(self.cancellation()),
        }
    }
}

impl fmt::Debug for HandlerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerContext")
            .field("delivery", &self.delivery_id())
            .field("attempt", &self.attempt)
            .field("max_attempts", &self.max_attempts)
            .field("token", &self.lease.token)
            .finish_non_exhaustive()
    }
}
