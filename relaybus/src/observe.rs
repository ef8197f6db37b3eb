//! Observers: what the bus reports while it works.
//!
//! Hooks run synchronously, on the task that does the work. A hook nobody is interested in costs nothing, not even a
//! clock read; a hook that panics is reported to [`Observer::failure`] with stage `observer`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorInfo};
use crate::event::{EventId, EventType};
use crate::handler_id::HandlerId;
use crate::headers::Headers;
use crate::store::{DeliveryId, Statistics};
use crate::transport::ReceiveOutcome;

/// Which hooks an observer wants, joined with `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u16);

impl Interest {
    /// No hook.
    pub const NONE: Self = Self(0);
    /// [`Observer::publish_finished`].
    pub const PUBLISH: Self = Self(1);
    /// [`Observer::claim_finished`].
    pub const CLAIM: Self = Self(1 << 1);
    /// [`Observer::handler_started`] and [`Observer::handler_finished`].
    pub const HANDLER: Self = Self(1 << 2);
    /// [`Observer::transport_sent`].
    pub const SEND: Self = Self(1 << 3);
    /// [`Observer::receive_finished`] and [`Observer::invalid_message`].
    pub const RECEIVE: Self = Self(1 << 4);
    /// [`Observer::backlog`].
    pub const BACKLOG: Self = Self(1 << 5);
    /// [`Observer::delivery_completed`], [`Observer::retry_scheduled`], [`Observer::delivery_dead`] and [`Observer::lease_lost`].
    pub const DELIVERY: Self = Self(1 << 6);
    /// [`Observer::failure`].
    pub const FAILURE: Self = Self(1 << 7);
    /// Every hook.
    pub const ALL: Self = Self(u16::MAX);

    const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for Interest {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Reports of a publish.
#[derive(Debug)]
#[non_exhaustive]
pub struct PublishFinished<'a> {
    /// The types of the events.
    pub event_types: &'a [EventType],
    /// How long the store took.
    pub duration: Duration,
    /// Why it failed.
    pub error: Option<&'a Error>,
}

/// Report of a claim.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClaimFinished<'a> {
    /// Runs asked for.
    pub requested: usize,
    /// Deliveries claimed.
    pub claimed: usize,
    /// Lanes touched, where the store leases lanes.
    pub lanes: usize,
    /// How long the store took.
    pub duration: Duration,
    /// Why it failed.
    pub error: Option<&'a Error>,
}

/// Report of a handler or route that begins.
#[derive(Debug)]
#[non_exhaustive]
pub struct HandlerStarted<'a> {
    /// The handler.
    pub handler: &'a HandlerId,
    /// The type of the event.
    pub event_type: &'a EventType,
    /// The event.
    pub event_id: &'a EventId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether it is a route.
    pub route: bool,
    /// Time since the event occurred.
    pub latency: Duration,
    /// Time since the event was stored.
    pub stored_latency: Duration,
}

/// Report of a handler or route that ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct HandlerFinished<'a> {
    /// The handler.
    pub handler: &'a HandlerId,
    /// The type of the event.
    pub event_type: &'a EventType,
    /// The event.
    pub event_id: &'a EventId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether it is a route.
    pub route: bool,
    /// How long it ran.
    pub duration: Duration,
    /// Why it failed.
    pub error: Option<&'a Error>,
}

/// Report of a send.
#[derive(Debug)]
#[non_exhaustive]
pub struct TransportSent<'a> {
    /// The transport's name.
    pub transport: &'a str,
    /// The messaging system.
    pub system: &'a str,
    /// The destination.
    pub destination: &'a str,
    /// How long the broker took.
    pub duration: Duration,
    /// Why it failed.
    pub error: Option<&'a Error>,
}

/// Report of a received event.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReceiveFinished<'a> {
    /// The transport's name; empty for a direct `receive`.
    pub transport: &'a str,
    /// Where it came from.
    pub destination: &'a str,
    /// The service that published it.
    pub source: &'a str,
    /// Its headers; [`crate::trace_context_of`] reads the trace context.
    pub headers: &'a Headers,
    /// How long storing took.
    pub duration: Duration,
    /// What became of it, or why it failed.
    pub outcome: Result<ReceiveOutcome, &'a Error>,
}

/// Where in the bus an error was caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Opening a session or claiming.
    Claim,
    /// Running a handler.
    Dispatch,
    /// Completing deliveries.
    Complete,
    /// Rescheduling, burying or releasing.
    Settle,
    /// Renewing the session.
    Renew,
    /// Purging.
    Purge,
    /// Watching the store for new deliveries, or reading its clock.
    Watch,
    /// Reading the backlog.
    Backlog,
    /// A hook panicked.
    Observer,
    /// Closing.
    Stop,
}

impl Stage {
    /// The stage as telemetry writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Dispatch => "dispatch",
            Self::Complete => "complete",
            Self::Settle => "settle",
            Self::Renew => "extend-lease",
            Self::Purge => "purge",
            Self::Watch => "watch",
            Self::Backlog => "backlog",
            Self::Observer => "observer",
            Self::Stop => "stop",
        }
    }
}

/// Hooks into a bus. Every one defaults to doing nothing; say in [`Observer::interest`] which you implement.
#[allow(unused_variables, reason = "default hooks do nothing with what they are given")]
pub trait Observer: Send + Sync + 'static {
    /// The hooks to call; asked once, when the bus is built. Defaults to all.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// A publish ended.
    fn publish_finished(&self, report: &PublishFinished<'_>) {}
    /// A claim ended.
    fn claim_finished(&self, report: &ClaimFinished<'_>) {}
    /// A handler or route begins to run.
    fn handler_started(&self, report: &HandlerStarted<'_>) {}
    /// A handler or route ended.
    fn handler_finished(&self, report: &HandlerFinished<'_>) {}
    /// A route's send ended.
    fn transport_sent(&self, report: &TransportSent<'_>) {}
    /// A received event was stored, ignored or refused.
    fn receive_finished(&self, report: &ReceiveFinished<'_>) {}
    /// A transport could not decode a message.
    fn invalid_message(&self, transport: &str, destination: &str, reason: &str) {}
    /// A reading of the backlog, and how long the oldest due delivery has waited.
    fn backlog(&self, statistics: &Statistics, oldest_age: Duration) {}
    /// A delivery's completion is durable.
    fn delivery_completed(&self, delivery: &DeliveryId) {}
    /// A failed attempt runs again after `delay`.
    fn retry_scheduled(&self, delivery: &DeliveryId, attempt: u32, delay: Duration, error: &ErrorInfo) {}
    /// A delivery went to the dead letters.
    fn delivery_dead(&self, delivery: &DeliveryId, attempt: u32, error: &ErrorInfo) {}
    /// A lease was lost while its delivery ran.
    fn lease_lost(&self, delivery: &DeliveryId) {}
    /// The bus caught an error.
    fn failure(&self, stage: Stage, error: &Error) {}
}

/// The observers of a bus, and the union of what they want.
#[derive(Clone)]
pub(crate) struct Observers {
    list: Arc<[(Interest, Arc<dyn Observer>)]>,
    wanted: Interest,
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.list.len())
    }
}

impl Observers {
    pub(crate) fn new(list: Vec<Arc<dyn Observer>>) -> Self {
        let list: Vec<_> = list.into_iter().map(|observer| (observer.interest(), observer)).collect();
        let wanted = list.iter().fold(Interest::NONE, |wanted, (interest, _)| wanted | *interest);
        Self { list: list.into(), wanted }
    }

    /// Whether anybody wants one of these hooks: checked before a report, or a clock reading for it, is made.
    pub(crate) fn want(&self, interest: Interest) -> bool {
        self.wanted.overlaps(interest)
    }

    pub(crate) fn call(&self, interest: Interest, hook: impl Fn(&dyn Observer)) {
        if !self.want(interest) {
            return;
        }
        for (_, observer) in self.list.iter().filter(|(wanted, _)| wanted.overlaps(interest)) {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(observer.as_ref()))) {
                let error = Error::ObserverPanicked { message: crate::run::panic_text(panic) };
                if interest == Interest::FAILURE {
                    tracing::error!(%error, "observer panicked");
                } else {
                    self.failure(Stage::Observer, &error);
                }
            }
        }
    }

    /// Reports and logs an error that the bus caught. The only place where such an error is logged.
    pub(crate) fn failure(&self, stage: Stage, error: &Error) {
        tracing::warn!(stage = stage.as_str(), code = error.code(), error = %ErrorInfo::of(error).message, "relaybus failure");
        self.call(Interest::FAILURE, |observer| observer.failure(stage, error));
    }

    pub(crate) fn invalid_message(&self, transport: &str, destination: &str, reason: &str) {
        self.call(Interest::RECEIVE, |observer| observer.invalid_message(transport, destination, reason));
    }
}
