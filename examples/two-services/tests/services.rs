//! The services work together, and one without its route does not start.

#![allow(clippy::unwrap_used, reason = "a test fails where something is wrong")]

use std::path::PathBuf;
use std::sync::Arc;

use relaybus_stores::SqliteStore;
use two_services::{Summary, Wire};

/// A directory of this test's own, deleted at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("two-services-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn every_order_reaches_the_other_service_and_the_answer_comes_back() {
    let directory = Directory::new("all");
    let summary = two_services::run(&directory.0, 12).await.unwrap();
    assert_eq!(summary, Summary { shipped: 9, cancelled: 3, parcels: 9, called_back: 3 });
}

#[tokio::test]
async fn a_service_without_its_route_does_not_start() {
    let directory = Directory::new("route");
    let store = SqliteStore::open(directory.0.join("orders.db")).await.unwrap();
    let bus = orders::builder(store, Arc::new(Wire::default().end())).build().unwrap();
    let error = bus.start().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Catalog events this service does not cover:
  - orders: OrderEvents.OrderPlaced (order.placed.v1) has no route to a transport
  - orders: OrderEvents.OrderCancelled (order.cancelled.v1) has no route to a transport"
    );
    assert!(bus.stop().await.unwrap().graceful);
}
