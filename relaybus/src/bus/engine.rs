//! The engine: everything of a bus that does not depend on the type of its store.
//!
//! It is one non-generic piece, and its futures are boxed here, so that the crates of users compile none of it again.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::OnceCell;

use super::handlers::Handlers;
use super::lifecycle::Lifecycle;
use super::looks::Looks;
use super::options::BusOptions;
use crate::catalog::Declarations;
use crate::clock::{Clock, Timestamp};
use crate::dispatch::{Breaks, Wake};
use crate::error::Result;
use crate::event::EventId;
use crate::event::EventIds;
use crate::event::EventType;
use crate::observe::Observers;
use crate::registry::States;
use crate::run::Middleware;
use crate::store::{AnyStore, EventStore};
use crate::task::Chance;
use crate::trace::Tracer;
use crate::transport::Transport;

/// Makes event ids, when the user wants other ones than version 7 UUIDs.
pub(crate) type IdMaker = Arc<dyn Fn() -> EventId + Send + Sync>;

/// The shared state of a bus.
pub(crate) struct Engine {
    pub(crate) store: AnyStore,
    pub(crate) options: BusOptions,
    pub(crate) handlers: Handlers,
    /// The roles and modules that the boot checks.
    pub(crate) declarations: Declarations,
    /// What was provided. The bus itself is added when handlers run, so that a stopped bus keeps nothing of itself alive.
    pub(crate) provided: States,
    pub(crate) with_bus: WithBus,
    pub(crate) transports: BTreeMap<String, Arc<dyn Transport>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Chance,
    pub(crate) ids: EventIds,
    pub(crate) id_maker: Option<IdMaker>,
    pub(crate) observers: Observers,
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    pub(crate) middleware: Option<Middleware>,
    pub(crate) wake: Wake,
    /// Deliveries whose transactions broke, for all dispatchers of this bus.
    pub(crate) breaks: Breaks,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) warned_unrouted: Mutex<HashSet<EventType>>,
    pub(crate) looks: Looks,
    pub(crate) store_reports_commits: OnceLock<bool>,
    /// Microseconds that the store's clock is ahead of ours.
    pub(crate) store_offset: AtomicI64,
    /// Set when that was measured.
    pub(crate) offset_known: OnceCell<()>,
}

/// Adds the typed and the erased bus to the provided values.
pub(crate) type WithBus = Box<dyn Fn(&Arc<Engine>, &mut States) + Send + Sync>;

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("store", &self.store)
            .field("source", &self.options.source)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// The time that the store is given: the bus's clock, corrected to the store's where the store has one.
    pub(crate) fn now(&self) -> Timestamp {
        let offset = self.store_offset.load(Ordering::Relaxed);
        Timestamp::from_micros(self.clock.now().as_micros().saturating_add(offset))
    }

    /// Measures how far the store's clock is ahead of ours; the answer is half a round trip old, which is the error of it.
    /// Returns whether the store has a clock of its own.
    pub(crate) async fn measure_offset(&self) -> Result<bool> {
        let (sent, began) = (self.clock.now(), self.clock.monotonic());
        let Some(theirs) = self.store.server_time().await? else { return Ok(false) };
        let half = self.clock.monotonic().saturating_sub(began) / 2;
        let offset = theirs.as_micros().saturating_sub(sent.after(half).as_micros());
        self.store_offset.store(offset, Ordering::Relaxed);
        let _ = self.offset_known.set(());
        Ok(true)
    }

    /// Measures it once where nobody did: a bus publishes without having been started too. A failure is the publish's to tell.
    pub(crate) async fn know_the_offset(&self) {
        if self.offset_known.initialized() {
            return;
        }
        let measure = async || {
            // The first answer may have waited for a connection; where there is none, no clock is read.
            match self.store.server_time().await? {
                Some(_) => self.measure_offset().await.map(|_| ()),
                None => Ok(()),
            }
        };
        let _ = self.offset_known.get_or_try_init(measure).await;
    }

    pub(crate) fn next_id(&self) -> EventId {
        match &self.id_maker {
            Some(make) => make(),
            None => self.ids.next(self.clock.now(), &self.chance),
        }
    }

    /// The provided values with the bus among them.
    pub(crate) fn states(self: &Arc<Self>) -> Arc<States> {
        let mut states = self.provided.clone();
        (self.with_bus)(self, &mut states);
        Arc::new(states)
    }

    /// Warns about an unrouted event type, once.
    pub(crate) fn warn_unrouted(&self, event_type: &EventType) {
        let mut warned = self.warned_unrouted.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(event_type.clone()) {
            tracing::warn!(%event_type, "event has no handler and no route: it is stored and nobody is told");
        }
    }
}
