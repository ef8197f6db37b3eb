//! Allocations of a delivery: its event slot and its handler's future, and nothing else.
//!
//! A test of its own binary, because it counts the allocations of the whole process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::alloc::System;
use std::sync::atomic::{AtomicU64, Ordering};

use relaybus::{DispatcherOptions, Event, EventBatch, MemoryStore, RelayBus, consumer, handlers};
use serde::{Deserialize, Serialize};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Event, Serialize, Deserialize)]
#[event("count.noop.v1")]
struct Noop {
    number: u64,
}

static SEEN: AtomicU64 = AtomicU64::new(0);

#[consumer(Noop, id = "count.noop")]
async fn noop(event: Noop) {
    SEEN.fetch_add(event.number, Ordering::Relaxed);
}

/// The slot of the decoded event, the handler's future, and one for what generated code boxes around it.
const PER_DELIVERY: f64 = 2.0;
/// Share of the groups: vectors of a turn, timers, queues that grow.
const PER_GROUP: f64 = 0.1;

fn allocations_of(deliveries: usize) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let bus = RelayBus::builder(MemoryStore::new())
            .handlers(handlers![noop])
            .dispatcher(DispatcherOptions::default().concurrency(200))
            .build()
            .unwrap();
        let batch: EventBatch = (0..deliveries).map(|_| Noop { number: 1 }).collect();
        bus.publish_all_detached(batch).await.unwrap();
        let region = Region::new(ALLOCATOR);
        assert_eq!(bus.drain().await.unwrap(), deliveries);
        region.change().allocations
    })
}

#[test]
fn a_delivery_allocates_its_event_and_its_future() {
    let few = allocations_of(1_000);
    let many = allocations_of(11_000);
    let each = (many - few) as f64 / 10_000.0;
    println!("{each} allocations a delivery");
    assert!(each <= PER_DELIVERY + PER_GROUP, "{each} allocations a delivery");
    assert_eq!(SEEN.load(Ordering::Relaxed), 12_000);
}
