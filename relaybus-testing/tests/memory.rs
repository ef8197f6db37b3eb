//! The store contract on the in-memory store: with and without a completion history, and erased.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of real tasks and timers, with helpers of their own"
)]

use std::sync::Arc;

use relaybus::memory::MemoryStore;
use relaybus::{AnyStore, EventStore};
use relaybus_testing::{StoreFactory, store_contract};

struct Memory {
    completion_history: bool,
}

impl StoreFactory for Memory {
    type Store = MemoryStore;

    async fn create(&self) -> MemoryStore {
        let store = MemoryStore::new().completion_history(self.completion_history);
        let ready = store.setup().await;
        assert!(ready.is_ok(), "{ready:?}");
        store
    }

    async fn peer(&self, _store: &MemoryStore) -> Option<MemoryStore> {
        None
    }
}

store_contract! {
    mod memory_plain;
    factory = Memory { completion_history: false };
}

store_contract! {
    mod memory_history;
    factory = Memory { completion_history: true };
}

struct Erased;

impl StoreFactory for Erased {
    type Store = AnyStore;

    async fn create(&self) -> AnyStore {
        AnyStore::new(Arc::new(MemoryStore::new()))
    }

    async fn peer(&self, _store: &AnyStore) -> Option<AnyStore> {
        None
    }
}

store_contract! {
    mod memory_erased;
    factory = Erased;
}
