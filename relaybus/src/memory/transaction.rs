//! Transactions: what is staged, and the commit that applies all of it at once.
//!
//! A transaction holds no lock while it is open: it only remembers. Its commit takes the store's mutex once and, inside,
//! (1) checks every completion against its lease, (2) applies everything, (3) runs the closures of
//! [`MemoryTransaction::on_commit`]. The sequence of events is therefore the sequence of commits, and whoever sees a
//! delivery also sees what the closures did.
//!
//! The closures run under the mutex because nothing weaker is correct: before the commit they could not be undone when a
//! lease turns out to be lost, and after the mutex is released a handler may already be running.

use std::any::{Any, TypeId};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::append::StagedEvent;
use super::state::State;
use super::{Memory, Shared};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::event::EventId;
use crate::handler_id::HandlerId;
use crate::store::{
    AppendBatch, AppendOutcome, Appended, CommitError, Completed, HandleOf, Lends, NewEvent, Settled, StoreTransaction,
};

/// A transaction of a [`MemoryStore`](super::MemoryStore).
///
/// It stages what is published and what is completed through it, and applies all of it when it commits. Dropping it
/// rolls back.
///
/// # Ids that two open transactions publish
///
/// The answer to an append is what would happen if the transaction committed now. If another transaction commits an
/// event of the same id first, this one's commit adds deliveries only for handlers that event never had, and the
/// answer that was given said too many.
pub struct MemoryTransaction {
    shared: Arc<Shared>,
    events: Vec<StagedEvent>,
    /// The handlers of each id that is staged, for the answers to appends.
    staged: HashMap<EventId, SmallVec<[Arc<[HandlerId]>; 1]>>,
    completed: Vec<(Completed, Timestamp)>,
    on_commit: Vec<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for MemoryTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTransaction")
            .field("events", &self.events.len())
            .field("completed", &self.completed.len())
            .field("on_commit", &self.on_commit.len())
            .finish()
    }
}

impl MemoryTransaction {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, events: Vec::new(), staged: HashMap::new(), completed: Vec::new(), on_commit: Vec::new() }
    }

    /// Runs `apply` as part of the commit, so that data of the application's own changes with the events: whoever finds
    /// an event of this transaction in the store also finds what `apply` did. Without a commit it never runs.
    ///
    /// Several run in the order they were given, and the closures of two transactions run in the order of their
    /// commits. They run under the store's mutex: `apply` must be short, must not use the store, and must not wait for a
    /// lock that somebody holds while using the store. When it panics, the transaction is committed all the same and
    /// the closures after it do not run.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use relaybus::memory::MemoryStore;
    /// use relaybus::store::{EventStore, StoreTransaction, TransactionOptions};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), relaybus::Error> {
    /// let orders = Arc::new(Mutex::new(Vec::new()));
    /// let store = MemoryStore::new();
    /// let mut tx = store.begin(&TransactionOptions::default()).await?;
    /// let table = orders.clone();
    /// tx.on_commit(move || table.lock().unwrap().push("order-1"));
    /// assert!(orders.lock().unwrap().is_empty());
    /// tx.commit().await?;
    /// assert_eq!(*orders.lock().unwrap(), ["order-1"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_commit(&mut self, apply: impl FnOnce() + Send + 'static) {
        self.on_commit.push(Box::new(apply));
    }

    pub(super) fn belongs_to(&self, shared: &Arc<Shared>) -> Result<()> {
        if Arc::ptr_eq(&self.shared, shared) {
            return Ok(());
        }
        Err(Error::configuration(
            "this transaction belongs to another in-memory store: pass one of the bus's own store",
        ))
    }

    pub(super) fn append(&mut self, batch: &AppendBatch) -> Appended {
        let shared = self.shared.clone();
        let state = shared.lock();
        let outcomes = batch.events.iter().map(|event| {
            let outcome = self.predict(&state, event);
            self.staged.entry(event.envelope.id.clone()).or_default().push(event.handlers.clone());
            self.events.push(StagedEvent::new(event, batch.now));
            outcome
        });
        Appended { outcomes: outcomes.collect() }
    }

    /// What the commit will do with an event if nobody else commits its id before.
    fn predict(&self, state: &State, event: &NewEvent) -> AppendOutcome {
        let id = &event.envelope.id;
        let row = state.ids.get(id).and_then(|position| state.events.get(position));
        let staged = self.staged.get(id);
        let is_new = |&(index, handler): &(usize, &HandlerId)| {
            let is_staged = staged.is_some_and(|lists| lists.iter().any(|list| list.contains(handler)));
            !is_staged && !state.had_handler(row, handler) && !event.handlers[..index].contains(handler)
        };
        let deliveries = event.handlers.iter().enumerate().filter(is_new).count();
        if row.is_none() && staged.is_none() {
            AppendOutcome::Stored { deliveries }
        } else {
            AppendOutcome::Known { added: deliveries }
        }
    }

    /// Stages a completion, if its lease stands. The commit checks it again.
    pub(super) fn complete(&mut self, completed: &Completed, now: Timestamp) -> Settled {
        if self.completed.iter().any(|(staged, _)| staged.lease == completed.lease) {
            return Settled::Gone;
        }
        match self.shared.lock().fence(&completed.lease) {
            Ok(_) => {
                self.completed.push((completed.clone(), now));
                Settled::Applied
            }
            Err(settled) => settled,
        }
    }

    /// Applies everything, or nothing. The answer is whether something became due.
    fn apply(mut self) -> std::result::Result<bool, CommitError> {
        // From the last, so that the end of a run gives nothing back that is completed here too.
        self.completed.sort_by_key(|(completed, _)| Reverse(completed.lease.position));
        let mut state = self.shared.lock();
        if self.completed.iter().any(|(completed, _)| state.fence(&completed.lease).is_err()) {
            return Err(CommitError::RolledBack(Error::LeaseLost));
        }
        for (completed, now) in &self.completed {
            if let Ok(place) = state.fence(&completed.lease) {
                state.complete(place, completed, *now);
            }
        }
        let mut is_due = false;
        for event in &self.events {
            let outcome = state.append(event);
            is_due |= event.is_due(outcome);
        }
        for apply in self.on_commit {
            apply();
        }
        drop(state);
        Ok(is_due)
    }
}

impl Lends<MemoryTransaction> for Memory {}

impl HandleOf<Memory> for MemoryTransaction {
    fn handle(&mut self) -> &mut MemoryTransaction {
        self
    }
}

impl StoreTransaction for MemoryTransaction {
    async fn commit(self) -> std::result::Result<(), CommitError> {
        let shared = self.shared.clone();
        if self.apply()? {
            shared.wake();
        }
        Ok(())
    }

    async fn rollback(self) -> Result<()> {
        Ok(())
    }

    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)> {
        if wanted == TypeId::of::<Self>() { Some(self) } else { None }
    }
}
