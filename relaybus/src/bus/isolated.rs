//! Transactions at an isolation level: how they are recognized, and what they hold back until they committed.
//!
//! The level of a running transaction cannot be read from its handle, which may be the database client's own connection.
//! So the task that runs the transaction carries a mark with the level and the addresses of everything the transaction
//! lends; the transaction does not move while its work runs, so an address that matches is that transaction.
//!
//! A transaction at a level may be run again. What its publishes announce (the observers' `publish_finished`, the wake-up)
//! waits in the mark until the run that counts has committed, and is gone with a run that did not.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;

use super::Engine;
use crate::event::EventType;
use crate::observe::{Interest, PublishFinished};
use crate::store::{IsolationLevel, StoreTransaction, TypeRef};

tokio::task_local! {
    static RUNNING: Option<Arc<Isolated>>;
}

/// The mark of a transaction at an isolation level.
pub(crate) struct Isolated {
    level: IsolationLevel,
    addresses: SmallVec<[usize; 4]>,
    held: Mutex<Vec<Announcement>>,
    /// The transaction around this one, which is another.
    outer: Option<Arc<Self>>,
}

/// What is said about a publish once its transaction has committed.
pub(crate) struct Announcement {
    pub(crate) engine: Arc<Engine>,
    pub(crate) event_types: Vec<EventType>,
    /// How long the store took; none when no observer wants to know.
    pub(crate) duration: Option<Duration>,
}

impl Announcement {
    fn make(&self) {
        if let Some(duration) = self.duration {
            let report = PublishFinished { event_types: &self.event_types, duration, error: None };
            self.engine.observers.call(Interest::PUBLISH, |observer| observer.publish_finished(&report));
        }
        self.engine.wake.wake();
    }
}

impl Isolated {
    /// The mark of a transaction that was just opened and stays where it is.
    pub(super) fn mark<T: StoreTransaction>(
        level: IsolationLevel,
        transaction: &mut T,
        handles: &[TypeRef],
    ) -> Arc<Self> {
        let mut addresses = SmallVec::new();
        addresses.push(std::ptr::from_mut(transaction).addr());
        for handle in handles {
            addresses.extend(transaction.lend(handle.id()).map(|lent| std::ptr::from_mut(lent).addr()));
        }
        Arc::new(Self { level, addresses, held: Mutex::default(), outer: running() })
    }

    /// The transaction at a level, among those that run around the caller, that lends what is at `address`.
    pub(crate) fn at(address: usize) -> Option<Arc<Self>> {
        std::iter::successors(running(), |mark| mark.outer.clone()).find(|mark| mark.addresses.contains(&address))
    }

    pub(super) fn level(&self) -> IsolationLevel {
        self.level
    }

    /// Keeps an announcement for the commit.
    pub(crate) fn hold(&self, announcement: Announcement) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(announcement);
    }

    /// Makes the announcements, after the commit.
    pub(super) fn committed(&self) {
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        held.iter().for_each(Announcement::make);
    }
}

fn running() -> Option<Arc<Isolated>> {
    RUNNING.try_with(Clone::clone).ok().flatten()
}

/// Runs `work` as part of the marked transaction; without a mark, of those that are around.
pub(super) async fn within<R>(mark: Option<Arc<Isolated>>, work: impl Future<Output = R>) -> R {
    RUNNING.scope(mark.or_else(running), work).await
}
