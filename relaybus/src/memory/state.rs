//! The tables of the in-memory store, and the one function through which a delivery changes its status.
//!
//! The truth is in [`EventRow`]: each event with its deliveries and their statuses. Everything else (due queues, chains
//! of keys, what sessions hold, counters) is an index that [`State::set_status`] derives from a status that changes.
//! `check` in the tests builds all of them anew from the truth and compares.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::clock::Timestamp;
use crate::envelope::{Envelope, RawPayload};
use crate::event::{EventId, OrderingKey};
use crate::handler_id::HandlerId;

/// Where a delivery is: the queue of its handler and the position of its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) queue: usize,
    pub(super) position: i64,
}

/// When a delivery is due and its event's position: the order in which a handler's deliveries are claimed.
pub(super) type Due = (Timestamp, i64);

/// The status of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Pending,
    Processing { session: i64 },
    Completed { at: Timestamp },
    Dead { at: Timestamp },
}

/// One event for one handler.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) queue: usize,
    pub(super) status: Status,
    pub(super) due_at: Timestamp,
    pub(super) attempts: u32,
    /// Claims that ended without completing the delivery: the last part of its token.
    pub(super) claims: i64,
    pub(super) last_error: Option<String>,
}

/// An event with its deliveries: unfinished, dead and, where a history is kept, completed.
#[derive(Debug)]
pub(super) struct EventRow {
    pub(super) event: Arc<Envelope<RawPayload>>,
    pub(super) lane: u8,
    pub(super) stored_at: Timestamp,
    /// The last completion of one of its deliveries.
    pub(super) completed_at: Option<Timestamp>,
    /// The queues of every handler the event ever had a delivery for. It outlives the deliveries.
    pub(super) handlers: SmallVec<[usize; 2]>,
    pub(super) deliveries: SmallVec<[Delivery; 1]>,
}

impl EventRow {
    pub(super) fn delivery(&self, queue: usize) -> Option<&Delivery> {
        self.deliveries.iter().find(|delivery| delivery.queue == queue)
    }
}

/// How many deliveries of a handler there are, by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) pending: u64,
    pub(super) processing: u64,
    pub(super) completed: u64,
    pub(super) dead: u64,
}

impl Counts {
    fn of(&mut self, status: Status) -> &mut u64 {
        match status {
            Status::Pending => &mut self.pending,
            Status::Processing { .. } => &mut self.processing,
            Status::Completed { .. } => &mut self.completed,
            Status::Dead { .. } => &mut self.dead,
        }
    }
}

/// The unfinished deliveries of one handler and key.
///
/// While a session holds some of them (`run`), none is listed in the due queue: that is the order of the key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    /// The pending ones by position, with when they are due.
    pub(super) pending: BTreeMap<i64, Timestamp>,
    /// The ones that a session holds, in their order.
    pub(super) run: SmallVec<[i64; 4]>,
    /// The entry of the due queue that stands for this key.
    listed: Option<Due>,
}

impl Chain {
    fn relist(&mut self, due: &mut BTreeSet<Due>) {
        let head = if self.run.is_empty() { self.pending.first_key_value() } else { None };
        let head = head.map(|(&position, &due_at)| (due_at, position));
        if head != self.listed {
            if let Some(entry) = self.listed {
                due.remove(&entry);
            }
            due.extend(head);
            self.listed = head;
        }
    }
}

/// The deliveries of one handler, as indexes into the events.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) handler: HandlerId,
    /// What can be claimed once it is due: unkeyed pending deliveries, and the head of each key that no session holds.
    pub(super) due: BTreeSet<Due>,
    pub(super) keys: HashMap<OrderingKey, Chain>,
    pub(super) counts: Counts,
}

impl Queue {
    fn new(handler: HandlerId) -> Self {
        Self { handler, due: BTreeSet::new(), keys: HashMap::new(), counts: Counts::default() }
    }

    /// The next delivery to claim, when it is due.
    pub(super) fn first_due(&self, now: Timestamp) -> Option<Due> {
        self.due.first().copied().filter(|&(due_at, _)| due_at <= now)
    }

    /// The positions behind `position` in the run that holds it.
    pub(super) fn behind(&self, key: &OrderingKey, position: i64) -> SmallVec<[i64; 8]> {
        let run = self.keys.get(key).map_or(&[][..], |chain| &chain.run);
        run.iter().copied().skip_while(|&held| held != position).skip(1).collect()
    }

    /// Follows a status that changed; `None` is a delivery that is not there.
    fn reindex(&mut self, key: Option<&OrderingKey>, entry: Due, from: Option<Status>, to: Option<Status>) {
        if let Some(status) = from {
            *self.counts.of(status) -= 1;
        }
        if let Some(status) = to {
            *self.counts.of(status) += 1;
        }
        match key {
            None => self.reindex_unkeyed(entry, from, to),
            Some(key) => self.reindex_keyed(key, entry, from, to),
        }
    }

    fn reindex_unkeyed(&mut self, entry: Due, from: Option<Status>, to: Option<Status>) {
        if from == Some(Status::Pending) {
            self.due.remove(&entry);
        }
        if to == Some(Status::Pending) {
            self.due.insert(entry);
        }
    }

    fn reindex_keyed(&mut self, key: &OrderingKey, entry: Due, from: Option<Status>, to: Option<Status>) {
        let (due_at, position) = entry;
        let chain = match self.keys.get_mut(key) {
            Some(chain) => chain,
            None => self.keys.entry(key.clone()).or_default(),
        };
        match from {
            Some(Status::Pending) => drop(chain.pending.remove(&position)),
            Some(Status::Processing { .. }) => chain.run.retain(|held| *held != position),
            Some(Status::Completed { .. } | Status::Dead { .. }) | None => {}
        }
        match to {
            Some(Status::Pending) => drop(chain.pending.insert(position, due_at)),
            Some(Status::Processing { .. }) => chain.run.push(position),
            Some(Status::Completed { .. } | Status::Dead { .. }) | None => {}
        }
        chain.relist(&mut self.due);
        if chain.pending.is_empty() && chain.run.is_empty() {
            self.keys.remove(key);
        }
    }
}

/// One dispatcher's presence. While the row exists, what it holds is nobody else's.
#[derive(Debug)]
pub(super) struct SessionRow {
    pub(super) expires_at: Timestamp,
    pub(super) held: HashSet<Place>,
}

/// Everything that is stored. One mutex is around all of it.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) events: BTreeMap<i64, EventRow>,
    pub(super) ids: HashMap<EventId, i64>,
    pub(super) names: HashMap<HandlerId, usize>,
    pub(super) queues: Vec<Queue>,
    pub(super) sessions: BTreeMap<i64, SessionRow>,
    /// The position of the newest event. Positions are never used twice, not even after a purge.
    pub(super) last_position: i64,
    /// The number of the newest session. Numbers are never used twice.
    pub(super) last_session: i64,
    /// Where the next purge starts to look.
    pub(super) purge_from: i64,
    pub(super) completion_history: bool,
    pub(super) allow_in_production: bool,
}

impl State {
    /// The queue of a handler, made when it is new.
    pub(super) fn queue_of(&mut self, handler: &HandlerId) -> usize {
        if let Some(&queue) = self.names.get(handler) {
            return queue;
        }
        let queue = self.queues.len();
        self.queues.push(Queue::new(handler.clone()));
        self.names.insert(handler.clone(), queue);
        queue
    }

    pub(super) fn delivery(&self, place: Place) -> Option<(&EventRow, &Delivery)> {
        let row = self.events.get(&place.position)?;
        Some((row, row.delivery(place.queue)?))
    }

    /// Adds a pending delivery to a stored event.
    pub(super) fn add_pending(&mut self, place: Place, due_at: Timestamp) {
        let Some(row) = self.events.get_mut(&place.position) else { return };
        let (queue, status) = (place.queue, Status::Pending);
        row.handlers.push(queue);
        row.deliveries.push(Delivery { queue, status, due_at, attempts: 0, claims: 0, last_error: None });
        let key = row.event.key.as_ref();
        self.queues[queue].reindex(key, (due_at, place.position), None, Some(status));
    }

    /// Changes the status of a delivery, or removes it (`None`), and every index with it. `adjust` changes the rest of the
    /// delivery at the same time; the due time of one that is pending stays.
    pub(super) fn set_status(&mut self, place: Place, to: Option<Status>, adjust: impl FnOnce(&mut Delivery)) {
        let Some(row) = self.events.get_mut(&place.position) else { return };
        let Some(index) = row.deliveries.iter().position(|delivery| delivery.queue == place.queue) else { return };
        let delivery = &mut row.deliveries[index];
        let from = delivery.status;
        let listed_at = delivery.due_at;
        adjust(delivery);
        debug_assert!(from != Status::Pending || delivery.due_at == listed_at, "the due queue has the old time");
        let entry = (delivery.due_at, place.position);
        match to {
            Some(status) => delivery.status = status,
            None => drop(row.deliveries.swap_remove(index)),
        }
        self.queues[place.queue].reindex(row.event.key.as_ref(), entry, Some(from), to);
        if let Some(holder) = holder(Some(from)).and_then(|session| self.sessions.get_mut(&session)) {
            holder.held.remove(&place);
        }
        if let Some(holder) = holder(to).and_then(|session| self.sessions.get_mut(&session)) {
            holder.held.insert(place);
        }
    }
}

fn holder(status: Option<Status>) -> Option<i64> {
    match status {
        Some(Status::Processing { session }) => Some(session),
        Some(Status::Pending | Status::Completed { .. } | Status::Dead { .. }) | None => None,
    }
}
