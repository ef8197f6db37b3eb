//! A dispatcher that panics: it says so, the bus is not ready meanwhile, and it starts again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use relaybus::observe::{Observer, Stage};
use relaybus::{Envelope, Error, HealthStatus, Subscribe};

use crate::kit::{Note, Seen, memory, ms, note, pass, secs};

/// A clock that can break.
struct Brittle(relaybus::VirtualClock, Arc<AtomicBool>);

impl relaybus::Clock for Brittle {
    fn now(&self) -> relaybus::Timestamp {
        assert!(!self.1.load(Ordering::SeqCst), "the clock is broken");
        self.0.now()
    }

    fn monotonic(&self) -> std::time::Duration {
        self.0.monotonic()
    }
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_that_panics_says_so_and_starts_again() {
    let broken = Arc::new(AtomicBool::new(false));
    let clock = Brittle(relaybus::VirtualClock::starting_at(crate::kit::start_time()), broken.clone());
    let (seen, failures) = (<Seen>::default(), Arc::new(Failures::default()));
    let handled = seen.clone();
    let handler = Subscribe::to("notes", move |event: Envelope<Note>, _| handled.handled(event.payload.text));
    let bus = memory().clock(clock).observer(failures.clone()).subscribe(handler).build().unwrap();
    bus.start().await.unwrap();
    assert!(bus.is_ready());
    broken.store(true, Ordering::SeqCst);
    pass(ms(1500)).await;
    broken.store(false, Ordering::SeqCst);
    let health = bus.health().await;
    assert_eq!((health.status, health.running, health.ready), (HealthStatus::Down, true, false));
    let error = health.dispatcher_error.expect("the cause is in the report");
    assert!(error.message.contains("dispatcher panicked (`the clock is broken`)"), "{error:?}");
    let heard = failures.0.lock().unwrap().clone();
    assert!(heard.iter().any(|(stage, text)| *stage == Stage::Dispatch && *text == error.message), "{heard:?}");

    // It goes on, in a session of its own.
    pass(secs(5)).await;
    let health = bus.health().await;
    assert_eq!((health.status, health.ready, health.dispatcher_error), (HealthStatus::Up, true, None));
    bus.publish_detached(note("a")).await.unwrap();
    pass(secs(5)).await;
    assert_eq!(seen.all(), ["a"]);
    assert!(bus.stop().await.unwrap().graceful);
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_that_is_down_does_not_hold_up_a_stop() {
    let broken = Arc::new(AtomicBool::new(false));
    let clock = Brittle(relaybus::VirtualClock::starting_at(crate::kit::start_time()), broken.clone());
    let bus = memory().clock(clock).subscribe(Subscribe::to("notes", |_: Envelope<Note>, _| async {})).build().unwrap();
    bus.start().await.unwrap();
    broken.store(true, Ordering::SeqCst);
    pass(secs(40)).await;
    assert!(!bus.is_ready());
    let stopped = bus.stop().await.unwrap();
    assert!(stopped.graceful && stopped.duration < secs(1), "{stopped:?}");
}

/// The failures that an observer heard of.
#[derive(Default)]
struct Failures(Mutex<Vec<(Stage, String)>>);

impl Observer for Failures {
    fn failure(&self, stage: Stage, error: &Error) {
        self.0.lock().unwrap().push((stage, error.to_string()));
    }
}
