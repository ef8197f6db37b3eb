//! The contract suite, without and with a completion history; its peers are stores with connections of their own.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use relaybus::EventStore;
use relaybus_stores::SqliteStore;
use relaybus_testing::StoreFactory;
use tempfile::TempDir;

/// Stores in files of a folder that is deleted with the factory.
pub(crate) struct SqliteFactory {
    folder: TempDir,
    history: bool,
    created: AtomicUsize,
}

impl SqliteFactory {
    fn new(history: bool) -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), history, created: AtomicUsize::new(0) }
    }

    async fn open(&self, path: &Path) -> SqliteStore {
        SqliteStore::builder(path).completion_history(self.history).build().await.expect("a store")
    }
}

impl StoreFactory for SqliteFactory {
    type Store = SqliteStore;

    async fn create(&self) -> SqliteStore {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        let store = self.open(&self.folder.path().join(format!("bus-{number}.db"))).await;
        store.setup().await.expect("setup");
        store
    }

    async fn peer(&self, store: &SqliteStore) -> Option<SqliteStore> {
        Some(self.open(store.path()).await)
    }
}

relaybus_testing::store_contract! {
    mod plain;
    factory = SqliteFactory::new(false);
}

relaybus_testing::store_contract! {
    mod with_history;
    factory = SqliteFactory::new(true);
}
