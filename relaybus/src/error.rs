//! Every error of the core, each with the stable code that alerts and retry rules branch on.
//!
//! One enum a crate boundary. Messages say what happened and what to do; the cause is kept as `source` and is not
//! repeated in the message. [`Error::code`] and [`Error::is_retryable`] name every variant, so that a new variant
//! decides both.

use std::time::Duration;

pub(crate) use crate::error_info::ErrorInfo;
use crate::event::EventType;

/// A boxed error of a handler, a store or a user's closure.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// The result of this crate; the error defaults to [`Error`].
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// What can go wrong in relaybus.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Invalid options, an invalid key or an application that cannot start as configured.
    #[error("{message}")]
    Configuration {
        /// What is wrong and what to do.
        message: String,
    },
    /// A route of a catalog gives a wire name to an event that it does not route.
    #[error("{message}")]
    UnknownCatalogEvent {
        /// What is wrong and what to do.
        message: String,
    },
    /// A route of a catalog sends an event to a destination that another route already sends it to.
    #[error("{message}")]
    DuplicateRouteEvent {
        /// What is wrong and what to do.
        message: String,
    },
    /// An event type has two wire names on a transport, or two event types share one.
    #[error("{message}")]
    WireTypeCollision {
        /// What is wrong and what to do.
        message: String,
    },
    /// Wire names were declared for a transport that cannot map type names.
    #[error("{message}")]
    WireTypesUnsupported {
        /// What is wrong and what to do.
        message: String,
    },
    /// A call ran outside the transaction it belongs in: a publish through a connection without one, or, where one
    /// transaction at a time can write, a call that opens another inside it and would wait for itself.
    #[error("{message}")]
    TransactionRequired {
        /// What was called, and what to do.
        message: String,
    },
    /// A transaction ran past its time budget and was rolled back.
    #[error("the transaction ran past its budget of {budget:?} and was rolled back: move slow calls out of it")]
    TransactionTimeout {
        /// The budget.
        budget: Duration,
        /// The database's own error, when it ended the transaction.
        #[source]
        source: Option<BoxError>,
    },
    /// A transaction was asked to join one of another isolation level.
    #[error("the running transaction has isolation level `{running}`, `{wanted}` was asked for: open it at that level")]
    TransactionIsolationConflict {
        /// The level that was asked for.
        wanted: &'static str,
        /// The level of the running transaction.
        running: &'static str,
    },
    /// A handler asked for the dead letters at once.
    #[error("the handler gave up without a retry: {message}")]
    NonRetryable {
        /// The handler's words.
        message: String,
        /// The handler's error.
        #[source]
        source: Option<BoxError>,
    },
    /// A payload does not decode as its event, or its event's `validate` refused it.
    #[error("the payload of `{event_type}` is not valid: {reason}")]
    EventValidation {
        /// The type of the event.
        event_type: EventType,
        /// Why: the kind of fault and where it is, never the payload.
        reason: String,
        /// The decoder's or validator's error.
        #[source]
        source: Option<BoxError>,
    },
    /// A message received from a broker is not a valid event.
    #[error("the received message is not a valid event: {reason}")]
    InvalidEnvelope {
        /// Why.
        reason: String,
    },
    /// The worker no longer owns the delivery it was processing.
    #[error("the lease of the delivery was lost while its handler ran: it runs again elsewhere")]
    LeaseLost,
    /// A handler did not finish within its timeout.
    #[error("the handler did not finish within its timeout of {timeout:?}")]
    HandlerTimeout {
        /// The timeout.
        timeout: Duration,
    },
    /// The bus stopped before the handler finished; its delivery was released.
    #[error("the bus stopped before the handler finished: its delivery was released")]
    DispatcherStopped,
    /// A delivery came back on its last attempt because its workers died; it was not run again.
    #[error(
        "the delivery's workers ended {attempts} times without an answer, which uses up its {max_attempts} attempts"
    )]
    AttemptsExhausted {
        /// Attempts charged so far.
        attempts: u32,
        /// The handler's limit.
        max_attempts: u32,
    },
    /// A method was called in a state that does not allow it.
    #[error("{message}")]
    Lifecycle {
        /// What was called, the state, and what to do.
        message: String,
    },
    /// `drain` still found due deliveries after its maximum number of batches.
    #[error("deliveries were still due after {batches} batches: a handler may publish what it handles")]
    DrainIncomplete {
        /// The batches that ran.
        batches: usize,
    },
    /// A handler panicked; its attempt failed.
    #[error("the handler panicked: {message}")]
    HandlerPanicked {
        /// The panic's text.
        message: String,
    },
    /// A hook of an observer panicked; it changed nothing else.
    #[error("an observer hook panicked: {message}")]
    ObserverPanicked {
        /// The panic's text.
        message: String,
    },
    /// A handler returned an error of its own.
    #[error("the handler failed")]
    Handler {
        /// The handler's error.
        #[source]
        source: BoxError,
    },
    /// The store could not do what it was asked.
    #[error("{message}")]
    Store {
        /// What failed, and what to do.
        message: String,
        /// Whether the same call may succeed later.
        retryable: bool,
        /// The database's error.
        #[source]
        source: Option<BoxError>,
    },
    /// The store's session of this worker ended: another worker took its work over.
    #[error("the worker's session with the store has ended: it opens a new one")]
    SessionLost,
    /// The database refused to serialize the transaction; the whole of it may be run again.
    #[error("the database could not serialize the transaction: run it again")]
    SerializationFailure {
        /// The database's error.
        #[source]
        source: Option<BoxError>,
    },
    /// A transport could not send an event.
    #[error("{message}")]
    Transport {
        /// What failed.
        message: String,
        /// The code of the transport's error, such as `RELAYBUS_KAFKA_PUBLISH_TIMEOUT`.
        code: &'static str,
        /// Whether the same send may succeed later.
        retryable: bool,
        /// The client's error.
        #[source]
        source: Option<BoxError>,
    },
}

impl Error {
    /// A [`Error::Configuration`].
    pub fn configuration(message: impl Into<String>) -> Self {
        Self::Configuration { message: message.into() }
    }

    /// The error that a handler or a layer returned: ours as it is, anything else as [`Error::Handler`].
    pub(crate) fn of_handler(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(ours) => *ours,
            Err(source) => Self::Handler { source },
        }
    }

    /// A [`Error::Lifecycle`].
    pub fn lifecycle(message: impl Into<String>) -> Self {
        Self::Lifecycle { message: message.into() }
    }

    /// A [`Error::Store`] that a later call may not meet again (connection lost, database busy, disk full).
    pub fn store_retryable(message: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Store { message: message.into(), retryable: true, source: Some(source.into()) }
    }

    /// A [`Error::Store`] that a later call will meet again.
    pub fn store(message: impl Into<String>, source: Option<BoxError>) -> Self {
        Self::Store { message: message.into(), retryable: false, source }
    }

    /// A [`Error::NonRetryable`]: the delivery goes to the dead letters at once.
    ///
    /// ```
    /// # use relaybus::Error;
    /// let error = Error::non_retryable("the account is closed");
    /// assert_eq!(error.code(), "RELAYBUS_NON_RETRYABLE");
    /// ```
    pub fn non_retryable(message: impl Into<String>) -> Self {
        Self::NonRetryable { message: message.into(), source: None }
    }

    /// The stable, machine-readable code; never renamed or reused.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Configuration { .. } => "RELAYBUS_CONFIGURATION",
            Self::UnknownCatalogEvent { .. } => "RELAYBUS_CATALOG_UNKNOWN_EVENT",
            Self::DuplicateRouteEvent { .. } => "RELAYBUS_ROUTE_DUPLICATE_EVENT",
            Self::WireTypeCollision { .. } => "RELAYBUS_WIRE_TYPE_COLLISION",
            Self::WireTypesUnsupported { .. } => "RELAYBUS_WIRE_TYPES_UNSUPPORTED",
            Self::TransactionRequired { .. } => "RELAYBUS_TRANSACTION_REQUIRED",
            Self::TransactionTimeout { .. } => "RELAYBUS_TRANSACTION_TIMEOUT",
            Self::TransactionIsolationConflict { .. } => "RELAYBUS_TRANSACTION_ISOLATION_CONFLICT",
            Self::NonRetryable { .. } => "RELAYBUS_NON_RETRYABLE",
            Self::EventValidation { .. } => "RELAYBUS_EVENT_VALIDATION",
            Self::InvalidEnvelope { .. } => "RELAYBUS_INVALID_ENVELOPE",
            Self::LeaseLost => "RELAYBUS_LEASE_LOST",
            Self::HandlerTimeout { .. } => "RELAYBUS_HANDLER_TIMEOUT",
            Self::DispatcherStopped => "RELAYBUS_DISPATCHER_STOPPED",
            Self::AttemptsExhausted { .. } => "RELAYBUS_ATTEMPTS_EXHAUSTED",
            Self::Lifecycle { .. } => "RELAYBUS_LIFECYCLE",
            Self::DrainIncomplete { .. } => "RELAYBUS_DRAIN_INCOMPLETE",
            Self::Transport { code, .. } => code,
            Self::HandlerPanicked { .. }
            | Self::ObserverPanicked { .. }
            | Self::Handler { .. }
            | Self::Store { .. }
            | Self::SessionLost
            | Self::SerializationFailure { .. } => "RELAYBUS_ERROR",
        }
    }

    /// The first error of ours among `error` and its causes.
    fn inside<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Self> {
        causes(error).find_map(|error| error.downcast_ref())
    }

    /// Whether a handler that failed with this error is tried again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Configuration { .. }
            | Self::UnknownCatalogEvent { .. }
            | Self::DuplicateRouteEvent { .. }
            | Self::WireTypeCollision { .. }
            | Self::WireTypesUnsupported { .. }
            | Self::TransactionRequired { .. }
            | Self::TransactionTimeout { .. }
            | Self::TransactionIsolationConflict { .. }
            | Self::LeaseLost
            | Self::HandlerTimeout { .. }
            | Self::DispatcherStopped
            | Self::Lifecycle { .. }
            | Self::DrainIncomplete { .. }
            | Self::HandlerPanicked { .. }
            | Self::ObserverPanicked { .. }
            | Self::SessionLost
            | Self::SerializationFailure { .. } => true,
            // A store refusal (a payload too large, say) inside a handler may depend on the handler's own state.
            Self::Store { .. } => true,
            // An error that a handler returned may carry one of ours inside, as a cause.
            Self::Handler { source } => Self::inside(source.as_ref()).is_none_or(Self::is_retryable),
            Self::Transport { retryable, .. } => *retryable,
            Self::NonRetryable { .. }
            | Self::EventValidation { .. }
            | Self::InvalidEnvelope { .. }
            | Self::AttemptsExhausted { .. } => false,
        }
    }
}

impl Error {
    /// The name of the error's class; stable, like the code.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Configuration { .. } => "ConfigurationError",
            Self::UnknownCatalogEvent { .. } => "UnknownCatalogEventError",
            Self::DuplicateRouteEvent { .. } => "DuplicateRouteEventError",
            Self::WireTypeCollision { .. } => "WireTypeCollisionError",
            Self::WireTypesUnsupported { .. } => "WireTypesUnsupportedError",
            Self::TransactionRequired { .. } => "TransactionRequiredError",
            Self::TransactionTimeout { .. } => "TransactionTimeoutError",
            Self::TransactionIsolationConflict { .. } => "TransactionIsolationConflictError",
            Self::NonRetryable { .. } => "NonRetryableError",
            Self::EventValidation { .. } => "EventValidationError",
            Self::InvalidEnvelope { .. } => "InvalidEnvelopeError",
            Self::LeaseLost => "LeaseLostError",
            Self::HandlerTimeout { .. } => "HandlerTimeoutError",
            Self::DispatcherStopped => "DispatcherStoppedError",
            Self::AttemptsExhausted { .. } => "AttemptsExhaustedError",
            Self::Lifecycle { .. } => "LifecycleError",
            Self::DrainIncomplete { .. } => "DrainIncompleteError",
            Self::HandlerPanicked { .. } | Self::ObserverPanicked { .. } => "Panic",
            Self::Handler { .. } => "Error",
            Self::Store { .. } => "StoreError",
            Self::SessionLost => "SessionLostError",
            Self::SerializationFailure { .. } => "SerializationFailureError",
            Self::Transport { .. } => "TransportError",
        }
    }
}

/// Most causes of an error that are looked at: a foreign one may name itself as its cause.
const MAX_CAUSES: usize = 64;

/// An error and its causes.
pub(crate) fn causes<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source()).take(MAX_CAUSES)
}
