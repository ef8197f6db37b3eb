//! A clock that a test owns: wall time stands still until it is advanced, and timers run when the test says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use relaybus::{Clock, Timestamp};

/// A point in time that a [`FakeClock`] can start at or be set to: a [`Timestamp`], or RFC 3339 text in UTC.
pub trait PointInTime {
    /// The point in time.
    ///
    /// # Panics
    /// When it is text that is no RFC 3339 in UTC.
    fn timestamp(self) -> Timestamp;
}

impl PointInTime for Timestamp {
    fn timestamp(self) -> Timestamp {
        self
    }
}

impl PointInTime for &str {
    #[allow(clippy::panic, reason = "a typo in a test's constant is best reported where it is")]
    fn timestamp(self) -> Timestamp {
        match self.parse() {
            Ok(timestamp) => timestamp,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A clock whose wall time moves only when a test advances it. Cloning is cheap; clones are the same clock.
///
/// Timers (polling, heartbeats, timeouts) are real by default. [`FakeClock::controlling_timers`] makes a clock that owns
/// them too: a bus that uses it does nothing on its own until the test advances time.
///
/// A store whose database works in threads of its own, such as the SQLite store, knows nothing of this clock: `advance` does
/// not wait until it has answered. With such a store advance the time and then call `bus.drain()`, which does, or wait for
/// what the handler did; or use the in-memory store, which answers at once.
///
/// ```
/// use std::time::Duration;
/// use relaybus::Clock;
/// use relaybus_testing::FakeClock;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let clock = FakeClock::controlling_timers("2026-01-01T00:00:00Z");
/// let alarm = tokio::spawn({
///     let clock = clock.clone();
///     async move {
///         clock.sleep(Duration::from_secs(30)).await;
///         clock.now()
///     }
/// });
/// tokio::task::yield_now().await;
/// assert_eq!(clock.pending_timers(), 1);
/// clock.advance(Duration::from_secs(60)).await;
/// assert_eq!(alarm.await.unwrap().to_string(), "2026-01-01T00:00:30.000000Z");
/// # }
/// ```
#[derive(Clone)]
pub struct FakeClock(Arc<Inner>);

struct Inner {
    /// Real time that passes counts too while the timers are real.
    real_since: Option<tokio::time::Instant>,
    state: Mutex<State>,
}

struct State {
    wall: Timestamp,
    monotonic: Duration,
    /// Timers that wait, by deadline and in the order they were made.
    waiting: BTreeMap<(Duration, u64), Option<Waker>>,
    /// Timers whose task was woken and did not look yet.
    woken: BTreeSet<u64>,
    made: u64,
}

/// How long `advance` lets other tasks run after a timer, in turns of the scheduler: a task that was woken usually
/// needs one to run and a few for what it sets off.
const TURNS_AFTER_A_TIMER: usize = 16;

/// How long `advance` waits for a woken task to look at its timer, in turns of the scheduler.
const TURNS_FOR_A_LOOK: usize = 10_000;

impl FakeClock {
    /// A clock that shows `start`, with real timers.
    ///
    /// # Panics
    /// When `start` is text that is no RFC 3339 in UTC.
    #[must_use]
    pub fn new(start: impl PointInTime) -> Self {
        Self::starting(start.timestamp(), Some(tokio::time::Instant::now()))
    }

    /// A clock that shows `start` and owns its timers: they run inside [`FakeClock::advance`] when their time comes.
    ///
    /// # Panics
    /// When `start` is text that is no RFC 3339 in UTC.
    #[must_use]
    pub fn controlling_timers(start: impl PointInTime) -> Self {
        Self::starting(start.timestamp(), None)
    }

    fn starting(wall: Timestamp, real_since: Option<tokio::time::Instant>) -> Self {
        let state =
            State { wall, monotonic: Duration::ZERO, waiting: BTreeMap::new(), woken: BTreeSet::new(), made: 0 };
        Self(Arc::new(Inner { real_since, state: Mutex::new(state) }))
    }

    /// Lets time pass, wall time and monotonic time alike.
    ///
    /// Timers that this clock owns run on the way, each at its own time and in order; a timer that is made meanwhile and
    /// falls into the same stretch of time runs too. Other tasks get to run before, after each timer, and at the end; on
    /// a runtime of one thread they run until they wait again, on one of several mostly.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the time where it is by then: at the start, at the end or at a timer between.
    pub async fn advance(&self, duration: Duration) {
        // Whatever was spawned before gets to make its timers first.
        self.let_the_woken_run().await;
        let end = self.0.lock().monotonic.saturating_add(duration);
        while let Some(deadline) = self.next_deadline(end) {
            self.pass_until(deadline);
            self.let_the_woken_run().await;
        }
        self.pass_until(end);
        self.let_the_woken_run().await;
    }

    /// Sets the wall clock, forwards or back, as an operator or a time server does. Monotonic time and timers stay.
    ///
    /// # Panics
    /// When `to` is text that is no RFC 3339 in UTC.
    pub fn set(&self, to: impl PointInTime) {
        let to = to.timestamp();
        self.0.lock().wall = to;
    }

    /// Timers of this clock that still wait. Always zero for a clock with real timers.
    #[must_use]
    pub fn pending_timers(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// The time until the next timer of this clock.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        let state = self.0.lock();
        state.waiting.keys().next().map(|(deadline, _)| deadline.saturating_sub(state.monotonic))
    }

    fn next_deadline(&self, end: Duration) -> Option<Duration> {
        let state = self.0.lock();
        state.waiting.keys().next().map(|(deadline, _)| *deadline).filter(|deadline| *deadline <= end)
    }

    /// Moves time and wakes the timers that are due then.
    fn pass_until(&self, monotonic: Duration) {
        let mut wakers = Vec::new();
        let mut state = self.0.lock();
        state.wall = state.wall.after(monotonic.saturating_sub(state.monotonic));
        state.monotonic = state.monotonic.max(monotonic);
        while let Some(timer) = state.waiting.first_entry()
            && timer.key().0 <= monotonic
        {
            let ((_, number), waker) = timer.remove_entry();
            // A timer that nobody has polled yet finds its time when it is.
            if let Some(waker) = waker {
                state.woken.insert(number);
                wakers.push(waker);
            }
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    async fn let_the_woken_run(&self) {
        for _ in 0..TURNS_FOR_A_LOOK {
            if self.0.lock().woken.is_empty() {
                break;
            }
            tokio::task::yield_now().await;
        }
        for _ in 0..TURNS_AFTER_A_TIMER {
            tokio::task::yield_now().await;
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FakeClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        f.debug_struct("FakeClock").field("now", &state.wall).field("pending_timers", &state.waiting.len()).finish()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        self.0.lock().wall
    }

    fn monotonic(&self) -> Duration {
        let advanced = self.0.lock().monotonic;
        self.0.real_since.map_or(advanced, |since| advanced.saturating_add(since.elapsed()))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        if self.0.real_since.is_some() {
            return Box::pin(tokio::time::sleep(duration));
        }
        let mut state = self.0.lock();
        state.made += 1;
        let (deadline, number) = (state.monotonic.saturating_add(duration), state.made);
        state.waiting.insert((deadline, number), None);
        drop(state);
        Box::pin(Sleep { clock: Arc::clone(&self.0), deadline, number })
    }
}

/// A timer of a clock that owns its timers.
struct Sleep {
    clock: Arc<Inner>,
    deadline: Duration,
    number: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.lock();
        if state.monotonic >= self.deadline {
            state.waiting.remove(&(self.deadline, self.number));
            state.woken.remove(&self.number);
            return Poll::Ready(());
        }
        state.waiting.insert((self.deadline, self.number), Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut state = self.clock.lock();
        state.waiting.remove(&(self.deadline, self.number));
        state.woken.remove(&self.number);
    }
}
