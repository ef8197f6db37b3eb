//! The bus's own overhead: no-op deliveries on the in-memory store, on one core.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use relaybus::{DispatcherOptions, Envelope, Event, EventBatch, MemoryStore, RelayBus, Subscribe};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::effort::Watch;
use crate::figures::{Figure, Outcome};

#[derive(Event, Serialize, Deserialize)]
#[event("bench.noop.v1", key = key)]
struct Noop {
    key: Option<String>,
    number: u64,
}

/// Deliveries a second through the whole bus with handlers that do nothing.
pub(crate) fn deliveries(count: usize, keys: Option<usize>, concurrency: usize) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let done = Arc::new((AtomicUsize::new(0), Notify::new()));
        let seen = done.clone();
        let bus = RelayBus::builder(MemoryStore::new())
            .subscribe(Subscribe::to("noop", move |_: Envelope<Noop>, _| {
                if seen.0.fetch_add(1, Ordering::Relaxed) + 1 == count {
                    seen.1.notify_one();
                }
                std::future::ready(())
            }))
            .dispatcher(DispatcherOptions::default().concurrency(concurrency))
            .build()?;
        let mut number = 0;
        while number < count {
            let batch: EventBatch = (0..1000.min(count - number))
                .map(|i| Noop { key: keys.map(|keys| format!("k{}", (number + i) % keys)), number: 0 })
                .collect();
            number += batch.len();
            bus.publish_all_detached(batch).await?;
        }
        let watch = Watch::start();
        bus.start().await?;
        done.1.notified().await;
        let effort = watch.stop();
        bus.stop().await?;
        let name = match keys {
            Some(keys) => format!("memory: no-op deliveries, {keys} keys, concurrency {concurrency}"),
            None => format!("memory: no-op deliveries, concurrency {concurrency}"),
        };
        let mut figures = vec![Figure::rate(&name, count as f64 / effort.wall * 1e6)];
        if effort.cpu > 0.0 {
            figures.push(Figure::rate(&format!("{name}, of processor time"), count as f64 / effort.cpu * 1e6));
        }
        Ok(figures)
    })
}
