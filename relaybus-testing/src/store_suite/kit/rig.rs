//! The stores of a case, and what is asked of them directly.

use std::sync::Arc;

use relaybus::store::{
    AppendOutcome, Appended, DeliveryPage, DeliveryQuery, DeliveryRecord, HandleOf, Statistics, TransactionOptions,
};
use relaybus::{EventStore, Timestamp};

use super::super::StoreFactory;
use super::{Draft, Worker, batch, handler};

/// A store under test with the factory that made it.
pub struct Rig<'f, F: StoreFactory> {
    factory: &'f F,
    store: Arc<F::Store>,
    peers: Vec<Arc<F::Store>>,
}

impl<'f, F: StoreFactory> Rig<'f, F> {
    /// A fresh store.
    pub async fn open(factory: &'f F) -> Self {
        Self { factory, store: Arc::new(factory.create().await), peers: Vec::new() }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<F::Store> {
        &self.store
    }

    /// The factory.
    #[must_use]
    pub fn factory(&self) -> &'f F {
        self.factory
    }

    /// Another instance on the same data; where the store has only one, that one again.
    pub async fn another(&mut self) -> Arc<F::Store> {
        match self.factory.peer(&self.store).await {
            Some(peer) => {
                let peer = Arc::new(peer);
                self.peers.push(Arc::clone(&peer));
                peer
            }
            None => Arc::clone(&self.store),
        }
    }

    /// Whether the store keeps a record of completed deliveries.
    #[must_use]
    pub fn keeps_history(&self) -> bool {
        self.store.capabilities().completion_history
    }

    /// Stores events, due at `now` unless they say otherwise.
    pub async fn append(&self, drafts: impl IntoIterator<Item = Draft>, now: Timestamp) -> Vec<AppendOutcome> {
        append(&*self.store, drafts, now).await
    }

    /// A worker on the store for these handlers.
    pub async fn worker(&self, handlers: &[&str], now: Timestamp) -> Worker<F::Store> {
        Worker::open(&self.store, handlers, now).await
    }

    /// The deliveries that match, all pages of them.
    pub async fn deliveries(&self, query: DeliveryQuery, now: Timestamp) -> Vec<DeliveryRecord> {
        let mut all = Vec::new();
        let mut query = query;
        loop {
            let DeliveryPage { deliveries, next } = self.store.list_deliveries(&query, now).await.unwrap();
            assert!(deliveries.len() <= query.limit, "a page of {} for a limit of {}", deliveries.len(), query.limit);
            all.extend(deliveries);
            match next {
                Some(cursor) => query = query.after(cursor),
                None => return all,
            }
        }
    }

    /// The delivery of an event for a handler, as an operator sees it.
    pub async fn delivery(&self, handler_name: &str, event_id: &str, now: Timestamp) -> Option<DeliveryRecord> {
        let all = self.deliveries(DeliveryQuery::all().handler(handler(handler_name)), now).await;
        all.into_iter().find(|record| record.id.event_id().as_str() == event_id)
    }

    /// The statistics of the store.
    pub async fn statistics(&self, now: Timestamp) -> Statistics {
        self.store.statistics(now).await.unwrap()
    }

    /// Ends the stores.
    pub async fn close(self) {
        for peer in self.peers {
            self.factory.destroy(peer).await;
        }
        self.factory.destroy(self.store).await;
    }
}

/// Stores events in a transaction of the store's own.
pub async fn append<S: EventStore>(
    store: &S,
    drafts: impl IntoIterator<Item = Draft>,
    now: Timestamp,
) -> Vec<AppendOutcome> {
    let batch = batch(drafts, now);
    let Appended { outcomes } = store.append_alone(&batch).await.expect("append");
    assert_eq!(outcomes.len(), batch.events.len(), "one outcome an event");
    outcomes
}

/// Opens a transaction with the store's defaults.
pub async fn begin<S: EventStore>(store: &S) -> S::Transaction {
    store.begin(&TransactionOptions::default()).await.expect("begin")
}

/// Stores events in a transaction.
pub async fn append_in<S: EventStore>(
    store: &S,
    transaction: &mut S::Transaction,
    drafts: impl IntoIterator<Item = Draft>,
    now: Timestamp,
) -> Vec<AppendOutcome> {
    let batch = batch(drafts, now);
    store.append(transaction.handle(), &batch).await.expect("append").outcomes
}
