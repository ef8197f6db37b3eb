//! The fake clock: what moves, what stays, and when timers run.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of real tasks and timers, with helpers of their own"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaybus::bus::Subscribe;
use relaybus::memory::MemoryStore;
use relaybus::{Clock, Event, RelayBus, Timestamp};
use relaybus_testing::{FakeClock, Recorder};
use serde::{Deserialize, Serialize};

const START: &str = "2026-01-01T00:00:00Z";

fn start() -> Timestamp {
    START.parse().unwrap()
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[tokio::test]
async fn wall_time_moves_only_when_advanced() {
    let clock = FakeClock::new(START);
    assert_eq!(clock.now(), start());
    clock.advance(seconds(60)).await;
    assert_eq!(clock.now(), start().after(seconds(60)));
    assert!(clock.monotonic() >= seconds(60));
    let same = clock.clone();
    same.advance(seconds(1)).await;
    assert_eq!(clock.now(), start().after(seconds(61)));
}

#[tokio::test(start_paused = true)]
async fn timers_are_real_by_default() {
    let clock = FakeClock::new(start());
    clock.sleep(seconds(5)).await;
    assert_eq!((clock.now(), clock.pending_timers()), (start(), 0));
    assert!(clock.monotonic() >= seconds(5), "monotonic time goes with the timers");
}

#[tokio::test]
async fn setting_the_wall_clock_moves_no_timer() {
    let clock = FakeClock::controlling_timers(START);
    let timer = tokio::spawn(clock.sleep(seconds(10)));
    tokio::task::yield_now().await;
    clock.set("2020-01-01T00:00:00Z");
    assert_eq!(
        (clock.now().to_string(), clock.monotonic()),
        ("2020-01-01T00:00:00.000000Z".to_owned(), Duration::ZERO)
    );
    assert_eq!((clock.pending_timers(), clock.next_timer()), (1, Some(seconds(10))));
    clock.advance(seconds(10)).await;
    timer.await.unwrap();
    assert_eq!(clock.now().to_string(), "2020-01-01T00:00:10.000000Z");
}

#[tokio::test]
async fn timers_run_at_their_own_time_and_in_order() {
    let clock = FakeClock::controlling_timers(START);
    let log = Arc::new(Mutex::new(Vec::new()));
    for (name, after) in [("c", 30), ("a", 10), ("b", 10), ("never", 61)] {
        let (clock, log) = (clock.clone(), Arc::clone(&log));
        let timer = clock.sleep(seconds(after));
        tokio::spawn(async move {
            timer.await;
            log.lock().unwrap().push((name, clock.now().since(start()).as_secs()));
        });
    }
    tokio::task::yield_now().await;
    clock.advance(seconds(60)).await;
    assert_eq!(*log.lock().unwrap(), [("a", 10), ("b", 10), ("c", 30)]);
    assert_eq!((clock.pending_timers(), clock.next_timer()), (1, Some(seconds(1))));
}

#[tokio::test]
async fn a_loop_ticks_through_the_whole_stretch() {
    let clock = FakeClock::controlling_timers(START);
    let ticks = Arc::new(Mutex::new(Vec::new()));
    let ticker = tokio::spawn({
        let (clock, ticks) = (clock.clone(), Arc::clone(&ticks));
        async move {
            loop {
                clock.sleep(seconds(1)).await;
                ticks.lock().unwrap().push(clock.now().since(start()).as_secs());
            }
        }
    });
    while clock.pending_timers() == 0 {
        tokio::task::yield_now().await;
    }
    clock.advance(seconds(5)).await;
    assert_eq!(*ticks.lock().unwrap(), [1, 2, 3, 4, 5], "each tick at its own second");
    ticker.abort();
}

#[tokio::test]
async fn a_dropped_timer_is_forgotten() {
    let clock = FakeClock::controlling_timers(START);
    let timer = clock.sleep(seconds(10));
    assert_eq!(clock.pending_timers(), 1, "it counts from the moment it is made");
    drop(timer);
    assert_eq!(clock.pending_timers(), 0);
    clock.advance(seconds(20)).await;
    clock.sleep(Duration::ZERO).await;
    let late = clock.sleep(seconds(1));
    clock.advance(seconds(1)).await;
    late.await;
}

#[derive(Event, Serialize, Deserialize, Clone)]
#[event("reminder.v1")]
struct Reminder {}

#[tokio::test]
async fn a_bus_lives_by_a_clock_that_owns_its_timers() {
    let clock = FakeClock::controlling_timers(START);
    let reminders = Recorder::<Reminder>::new();
    reminders.fail_next(1);
    let bus = RelayBus::builder(MemoryStore::new())
        .source("shop")
        .clock(clock.clone())
        .seed(7)
        .subscribe(Subscribe::to("reminders.send", reminders.handler()))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(Reminder {}).delay(seconds(30)).await.unwrap();
    clock.advance(seconds(29)).await;
    assert_eq!(reminders.calls(), 0, "not before its time");
    clock.advance(seconds(60)).await;
    assert_eq!((reminders.calls(), reminders.handled().len()), (2, 1), "it failed once and was repeated");
    assert!(clock.pending_timers() > 0, "the bus waits for its next look");
    bus.stop().await.unwrap();
}

#[test]
fn a_start_that_is_no_time_is_refused() {
    let refused = std::panic::catch_unwind(|| FakeClock::controlling_timers("tomorrow")).unwrap_err();
    let message = refused.downcast_ref::<String>().unwrap();
    assert!(message.contains("`tomorrow` is not a point in time"), "{message}");
}
