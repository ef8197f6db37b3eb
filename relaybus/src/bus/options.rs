//! Options of the bus, their defaults, and their checks.

use std::time::Duration;

use crate::duration::IntoDuration;

/// Service name that is recorded on events without one.
pub const DEFAULT_SOURCE: &str = "relaybus";
/// Time budget of a `bus.transaction`.
pub const DEFAULT_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(5);
/// Handlers that run at once.
pub const DEFAULT_CONCURRENCY: usize = 10;
/// Idle wait between claims.
pub const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Length of a lease.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);
/// Longest `stop`.
pub const DEFAULT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// Completions that finish within this time are written together.
pub const DEFAULT_COMPLETION_WINDOW: Duration = Duration::from_millis(2);
/// Most completions that are written together.
pub const DEFAULT_COMPLETION_BATCH: usize = 200;
/// Most deliveries of one key that a claim hands out together.
pub const DEFAULT_RUN_LENGTH: usize = 20;
/// How long events are kept after their deliveries completed.
pub const DEFAULT_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Cleanup cadence.
pub const DEFAULT_RETENTION_INTERVAL: Duration = Duration::from_secs(3600);
/// Rows deleted by one store call of a purge.
pub const DEFAULT_PURGE_BATCH: usize = 1000;

/// What to do with an event that has no handler and no route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnroutedEvents {
    /// Store it, and log a warning once for its type. The default.
    #[default]
    Warn,
    /// Refuse to publish it.
    Reject,
}

/// How handlers are dispatched.
///
/// ```
/// use relaybus::DispatcherOptions;
/// let options = DispatcherOptions::default().concurrency(200).batch_size(50).lease("60s");
/// ```
#[derive(Clone, Debug)]
pub struct DispatcherOptions {
    pub(crate) enabled: bool,
    pub(crate) concurrency: usize,
    pub(crate) batch_size: Option<usize>,
    pub(crate) poll_interval: Duration,
    pub(crate) lease: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) completion_window: Duration,
    pub(crate) completion_batch: usize,
    pub(crate) run_length: usize,
    faults: Vec<String>,
}

impl Default for DispatcherOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            concurrency: DEFAULT_CONCURRENCY,
            batch_size: None,
            poll_interval: DEFAULT_POLL_INTERVAL,
            lease: DEFAULT_LEASE,
            shutdown_timeout: DEFAULT_SHUTDOWN_TIMEOUT,
            completion_window: DEFAULT_COMPLETION_WINDOW,
            completion_batch: DEFAULT_COMPLETION_BATCH,
            run_length: DEFAULT_RUN_LENGTH,
            faults: Vec::new(),
        }
    }
}

impl DispatcherOptions {
    /// Whether this process runs handlers. Defaults to true.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Handlers that run at once. Defaults to 10.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Most runs claimed by one store call; never more than the concurrency, which is the default.
    #[must_use]
    pub fn batch_size(mut self, batch_size: usize) -> Self {
        self.batch_size = Some(batch_size);
        self
    }

    /// Idle wait between claims; retries are picked up on this cadence. Defaults to 1 s.
    #[must_use]
    pub fn poll_interval(mut self, interval: impl IntoDuration) -> Self {
        self.poll_interval = self.duration("poll_interval", interval);
        self
    }

    /// Length of a lease, renewed every third. Defaults to 30 s.
    #[must_use]
    pub fn lease(mut self, lease: impl IntoDuration) -> Self {
        self.lease = self.duration("lease", lease);
        self
    }

    /// Longest `stop` in all; handlers are cancelled and released at four fifths of it. Defaults to 30 s.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: impl IntoDuration) -> Self {
        self.shutdown_timeout = self.duration("shutdown_timeout", timeout);
        self
    }

    /// Deliveries that finish within this time are completed with one store call; zero completes one by one.
    /// Defaults to 2 ms.
    #[must_use]
    pub fn completion_window(mut self, window: impl IntoDuration) -> Self {
        self.completion_window = self.duration("completion_window", window);
        self
    }

    /// Most deliveries completed in one store call. Defaults to 200.
    #[must_use]
    pub fn completion_batch(mut self, batch: usize) -> Self {
        self.completion_batch = batch;
        self
    }

    /// Most consecutive deliveries of one key that a claim hands to one worker. Defaults to 20; 1 claims each by itself.
    #[must_use]
    pub fn run_length(mut self, length: usize) -> Self {
        self.run_length = length;
        self
    }

    fn duration(&mut self, option: &str, value: impl IntoDuration) -> Duration {
        value.into_duration().unwrap_or_else(|error| {
            self.faults.push(format!("dispatcher option `{option}`: {error}"));
            // Not zero: a second message about zero would only repeat the fault.
            Duration::from_secs(1)
        })
    }

    pub(crate) fn batch(&self) -> usize {
        self.batch_size.unwrap_or(self.concurrency).min(self.concurrency)
    }

    /// Everything that is wrong with them.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = self.faults.clone();
        let at_least_one = [
            ("concurrency", self.concurrency),
            ("batch_size", self.batch_size.unwrap_or(1)),
            ("completion_batch", self.completion_batch),
            ("run_length", self.run_length),
        ];
        for (option, value) in at_least_one {
            if value == 0 {
                faults.push(format!("dispatcher option `{option}` is 0, expected at least 1"));
            }
        }
        if self.concurrency > MAX_CONCURRENCY {
            let concurrency = self.concurrency;
            faults
                .push(format!("dispatcher option `concurrency` is {concurrency}, expected at most {MAX_CONCURRENCY}"));
        }
        let shortest = Duration::from_millis(1);
        let positive =
            [("poll_interval", self.poll_interval), ("lease", self.lease), ("shutdown_timeout", self.shutdown_timeout)];
        for (option, value) in positive {
            if value < shortest {
                faults.push(format!("dispatcher option `{option}` is {value:?}, expected at least 1ms"));
            }
        }
        for (option, value) in positive.into_iter().chain([("completion_window", self.completion_window)]) {
            if value > LONGEST {
                faults.push(format!("dispatcher option `{option}` is {value:?}, expected at most 365d"));
            }
        }
        faults
    }
}

/// Points in time are calculated with these options; more than this is a mistake.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Each running handler has a task of its own; more than this is a mistake.
const MAX_CONCURRENCY: usize = 100_000;

/// How long finished work is kept.
#[derive(Clone, Debug)]
pub struct RetentionOptions {
    pub(crate) completed: Option<Duration>,
    pub(crate) dead: Option<Duration>,
    pub(crate) interval: Duration,
    faults: Vec<String>,
}

impl Default for RetentionOptions {
    fn default() -> Self {
        Self {
            completed: Some(DEFAULT_RETENTION),
            dead: None,
            interval: DEFAULT_RETENTION_INTERVAL,
            faults: Vec::new(),
        }
    }
}

impl RetentionOptions {
    /// Delete events this long after their last delivery completed; also how long an event id is known. Defaults to 7 days.
    #[must_use]
    pub fn completed(mut self, after: impl IntoDuration) -> Self {
        self.completed = self.duration("completed", after);
        self
    }

    /// Keep completed events for ever.
    #[must_use]
    pub fn keep_completed(mut self) -> Self {
        self.completed = None;
        self
    }

    /// Delete dead letters after this. Defaults to keeping them.
    #[must_use]
    pub fn dead(mut self, after: impl IntoDuration) -> Self {
        self.dead = self.duration("dead", after);
        self
    }

    /// How often to clean up. Defaults to 1 h.
    #[must_use]
    pub fn interval(mut self, interval: impl IntoDuration) -> Self {
        self.interval = self.duration("interval", interval).unwrap_or(DEFAULT_RETENTION_INTERVAL);
        self
    }

    fn duration(&mut self, option: &str, value: impl IntoDuration) -> Option<Duration> {
        value.into_duration().map_err(|error| self.faults.push(format!("retention option `{option}`: {error}"))).ok()
    }

    /// Everything that is wrong with them.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = self.faults.clone();
        if self.interval < Duration::from_millis(1) {
            faults.push("retention option `interval` is 0, expected at least 1ms".to_owned());
        }
        faults
    }
}

/// Everything a built bus keeps of its options.
#[derive(Clone, Debug)]
pub(crate) struct BusOptions {
    pub(crate) source: std::sync::Arc<str>,
    pub(crate) transaction_timeout: Option<Duration>,
    pub(crate) unrouted: UnroutedEvents,
    pub(crate) dispatcher: DispatcherOptions,
    pub(crate) retention: RetentionOptions,
    pub(crate) setup_store: bool,
    pub(crate) backlog_interval: Option<Duration>,
    pub(crate) subscriptions: Vec<Subscription>,
}

/// Destinations to receive from.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) transport: String,
    pub(crate) destinations: Vec<String>,
}
