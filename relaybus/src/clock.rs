//! The clock: the only place of the crate that reads time or waits for it.
//!
//! Everything the bus knows about time comes through [`Clock`]: wall time for what is stored, monotonic time for
//! lease deadlines and measurements, and timers. A test therefore owns time by passing its own clock, and a whole
//! simulation runs under tokio's paused clock. Clippy's `disallowed-methods` keeps the rest of the crate honest.
#![allow(clippy::disallowed_methods, reason = "this module is the one place that may read clocks and start timers")]

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;

/// A point in time: microseconds since the Unix epoch, UTC.
///
/// Stores keep it as an integer. It prints as RFC 3339 with microseconds.
///
/// ```
/// use relaybus::Timestamp;
/// let at: Timestamp = "2026-01-01T00:00:00Z".parse()?;
/// assert_eq!(at.to_string(), "2026-01-01T00:00:00.000000Z");
/// assert_eq!(format!("{at:?}"), "Timestamp(2026-01-01T00:00:00.000000Z)");
/// # Ok::<(), relaybus::Error>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The latest representable point: "never due".
    pub const MAX: Self = Self(i64::MAX);
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// A timestamp from microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This point plus `duration`, capped at [`Timestamp::MAX`].
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// This point minus `duration`, capped at the earliest representable point.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The time from `earlier` to this point; zero when `earlier` is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self::EPOCH.after(after),
            Err(before) => Self::EPOCH.before(before.duration()),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u64::try_from(self.0) {
            Ok(micros) if micros < MAX_PRINTABLE_MICROS => {
                humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_micros(micros)).fmt(f)
            }
            _ => write!(f, "{}us", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

/// 9999-12-31T23:59:59Z, the last second that RFC 3339 can write.
const MAX_PRINTABLE_MICROS: u64 = 253_402_300_799_000_000;

impl FromStr for Timestamp {
    type Err = crate::Error;

    /// Reads RFC 3339 in UTC (`2026-01-01T00:00:00Z`).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_rfc3339(text).map(Self::from).map_err(|_| {
            crate::Error::configuration(format!(
                "`{text}` is not a point in time: write RFC 3339 in UTC, such as `2026-01-01T00:00:00Z`"
            ))
        })
    }
}

/// Wall time, monotonic time and timers of a bus.
///
/// Implement it to own time in a test; [`SystemClock`] is the default.
pub trait Clock: Send + Sync + 'static {
    /// The wall time that is stored with events and deliveries. It may jump, forwards and back.
    fn now(&self) -> Timestamp;

    /// Time since an arbitrary fixed point. It never goes back, whatever the wall clock does.
    fn monotonic(&self) -> Duration;

    /// Resolves after `duration` of this clock's time.
    ///
    /// Defaults to a real timer, so that a clock which only fakes `now` leaves polling and heartbeats running.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The operating system's clock and tokio's timers.
///
/// Under tokio's paused time (`tokio::time::pause`) its monotonic part and its timers are virtual.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: tokio::time::Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A clock that moves only with tokio's time: wall time is a fixed start plus the virtual time that passed.
///
/// With tokio's paused time a whole bus runs as fast as the machine can, reproducibly.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// use std::time::Duration;
/// use relaybus::{Clock, Timestamp, VirtualClock};
/// let clock = VirtualClock::starting_at("2026-01-01T00:00:00Z".parse()?);
/// clock.sleep(Duration::from_secs(3600)).await;
/// assert_eq!(clock.now(), "2026-01-01T01:00:00Z".parse::<Timestamp>()?);
/// # Ok::<(), relaybus::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    start: Timestamp,
    origin: tokio::time::Instant,
}

impl VirtualClock {
    /// A clock that shows `start` now and from then on follows tokio's time.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: tokio::time::Instant::now() }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.start.after(self.origin.elapsed())
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}
