//! A handler that records: what a test waits for instead of sleeping.

use std::fmt;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use relaybus::{Envelope, Error, Event, HandlerContext, Result};
use tokio::sync::watch;

/// Records the events that a handler is called with, fails on demand, and tells when there are enough. Cloning is cheap;
/// clones are the same recorder.
///
/// ```
/// use relaybus::bus::Subscribe;
/// use relaybus::memory::MemoryStore;
/// use relaybus::{Event, RelayBus};
/// use relaybus_testing::{FakeClock, Recorder};
/// use serde::{Deserialize, Serialize};
/// use std::time::Duration;
///
/// #[derive(Event, Serialize, Deserialize, Clone)]
/// #[event("order.placed.v1")]
/// struct OrderPlaced {
///     order_id: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), relaybus::Error> {
/// let clock = FakeClock::new("2026-01-01T00:00:00Z");
/// let shipping = Recorder::<OrderPlaced>::new();
/// shipping.fail_next(1);
/// let bus = RelayBus::builder(MemoryStore::new())
///     .source("shop")
///     .clock(clock.clone())
///     .subscribe(Subscribe::to("shipping.ship", shipping.handler()))
///     .build()?;
/// bus.publish_detached(OrderPlaced { order_id: "o-1".to_owned() }).await?;
/// bus.drain().await?; // the first attempt fails
/// clock.advance(Duration::from_secs(60)).await; // make the retry due
/// bus.drain().await?;
/// assert_eq!((shipping.calls(), shipping.handled().len()), (2, 1));
/// assert_eq!(shipping.handled()[0].payload.order_id, "o-1");
/// # Ok(())
/// # }
/// ```
pub struct Recorder<E>(Arc<Shared<E>>);

struct Shared<E> {
    state: Mutex<State<E>>,
    handled: watch::Sender<usize>,
}

struct State<E> {
    handled: Vec<Envelope<E>>,
    calls: usize,
    failures: usize,
}

impl<E> Clone for Recorder<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E> Default for Recorder<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for Recorder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        f.debug_struct("Recorder").field("handled", &state.handled.len()).field("calls", &state.calls).finish()
    }
}

impl<E> Shared<E> {
    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, event: Envelope<E>) -> Result<()> {
        let mut state = self.lock();
        state.calls += 1;
        if state.failures > 0 {
            state.failures -= 1;
            return Err(Error::Handler { source: "the recorder was told to fail".into() });
        }
        state.handled.push(event);
        let handled = state.handled.len();
        drop(state);
        self.handled.send_replace(handled);
        Ok(())
    }
}

impl<E> Recorder<E> {
    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        let state = State { handled: Vec::new(), calls: 0, failures: 0 };
        Self(Arc::new(Shared { state: Mutex::new(state), handled: watch::Sender::new(0) }))
    }

    /// The next `count` calls fail with an error that is retried.
    pub fn fail_next(&self, count: usize) {
        self.0.lock().failures = count;
    }

    /// How often the handler was called, failed calls included.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.0.lock().calls
    }

    /// Waits until this many events were handled with success.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn wait_for(&self, count: usize) {
        let mut handled = self.0.handled.subscribe();
        // The sender lives in `self`, so this ends only when there are as many.
        let _ = handled.wait_for(|handled| *handled >= count).await.is_ok();
    }
}

impl<E: Event + Clone> Recorder<E> {
    /// The handler, for [`Subscribe::to`](relaybus::bus::Subscribe::to).
    pub fn handler(&self) -> impl Fn(Envelope<E>, HandlerContext) -> Ready<Result<()>> + Send + Sync + 'static {
        let shared = Arc::clone(&self.0);
        move |event, _context| ready(shared.call(event))
    }

    /// The events that were handled with success, in order.
    #[must_use]
    pub fn handled(&self) -> Vec<Envelope<E>> {
        self.0.lock().handled.clone()
    }
}
