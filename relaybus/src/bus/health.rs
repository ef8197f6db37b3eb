//! Health and readiness, as a report a service can serve.

use futures_util::future::BoxFuture;

use super::RelayBus;
use crate::error::ErrorInfo;
use crate::store::{EventStore, Statistics};

/// Whether the bus works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// It runs, its transports are ready and its store answers.
    Up,
    /// Something of it is missing.
    Down,
}

/// A health report.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Health {
    /// The verdict.
    pub status: HealthStatus,
    /// Whether the bus is running.
    pub running: bool,
    /// Whether the bus runs, its dispatcher with it, and every transport is ready.
    pub ready: bool,
    /// How many handlers and routes it has.
    pub handlers: usize,
    /// Counts of deliveries, when the store answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Statistics>,
    /// How long the oldest due delivery has waited, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_milliseconds: Option<u64>,
    /// Why the dispatcher is down: it panicked, and starts again after a wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatcher_error: Option<ErrorInfo>,
    /// Why the store did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
}

impl<S: EventStore> RelayBus<S> {
    /// Whether the bus runs, its dispatcher is not down after a panic, and every transport can publish and receive.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.engine.lifecycle.is_working() && self.engine.transports.values().all(|transport| transport.is_ready())
    }

    /// Looks at everything a health check should: the bus, its transports and its store.
    ///
    /// # Cancel safety
    /// Reads only.
    pub fn health(&self) -> BoxFuture<'_, Health> {
        Box::pin(async {
            let now = self.engine.now();
            let running = self.engine.lifecycle.is_running();
            let ready = self.is_ready();
            let (statistics, error) = match self.engine.store.statistics(now).await {
                Ok(statistics) => (Some(statistics), None),
                Err(error) => (None, Some(ErrorInfo::of(&error))),
            };
            let lag = statistics.map(|statistics| statistics.lag(now));
            Health {
                status: if ready && error.is_none() { HealthStatus::Up } else { HealthStatus::Down },
                running,
                ready,
                handlers: self.engine.handlers.by_id.len(),
                statistics,
                lag_milliseconds: lag.map(|lag| u64::try_from(lag.as_millis()).unwrap_or(u64::MAX)),
                dispatcher_error: self.engine.lifecycle.dispatcher_fault(),
                error,
            }
        })
    }
}
