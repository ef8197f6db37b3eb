//! Where the suite gets its stores from.

use std::future::Future;
use std::sync::Arc;

use relaybus::EventStore;

/// Makes the stores that the contract cases run against.
///
/// A factory is made anew for every case and dropped after it, also when the case failed: what must be cleaned up in
/// any case (a temporary folder, a schema) is best owned by the factory.
pub trait StoreFactory: Send + Sync + 'static {
    /// The store under test.
    type Store: EventStore;

    /// A fresh, empty store that is ready for use (`setup` ran).
    fn create(&self) -> impl Future<Output = Self::Store> + Send;

    /// Another instance with its own connections on the data of `store`, also after `store` was closed.
    ///
    /// `None` when the store lives in one instance only; its `several_processes` is off then.
    fn peer(&self, store: &Self::Store) -> impl Future<Output = Option<Self::Store>> + Send;

    /// Ends a store that a case used. Defaults to [`EventStore::close`].
    fn destroy(&self, store: Arc<Self::Store>) -> impl Future<Output = ()> + Send {
        async move {
            let closed = store.close().await;
            assert!(closed.is_ok(), "the store does not close: {closed:?}");
        }
    }
}
