//! What operators ask: lists, counts, requeueing and purging.
//!
//! These walk the events from the oldest, under the mutex: a page costs what it passes over, and a cursor skips all
//! before it.

use smallvec::SmallVec;

use super::state::{Counts, Delivery, EventRow, Place, State, Status};
use crate::clock::Timestamp;
use crate::store::{
    DeliveryCursor, DeliveryId, DeliveryPage, DeliveryQuery, DeliveryRecord, DeliveryStatus, HandlerBacklog,
    LeaseToken, MAX_PAGE, PurgeRequest, Purged, Requeued, Statistics,
};

impl State {
    pub(super) fn list(&self, query: &DeliveryQuery) -> DeliveryPage {
        let limit = query.limit.clamp(1, MAX_PAGE);
        let (mut page, mut last) = (DeliveryPage::default(), None);
        let start = query.after.as_ref().map_or(i64::MIN, |cursor| cursor.position);
        for (&position, row) in self.events.range(start..) {
            for delivery in self.matching(query, position, row) {
                if page.deliveries.len() == limit {
                    page.next = last;
                    return page;
                }
                page.deliveries.push(self.record(row, delivery));
                let handler = self.queues[delivery.queue].handler.clone();
                last = Some(DeliveryCursor { position, handler });
            }
        }
        page
    }

    /// The deliveries of an event that the query asks for, by handler.
    fn matching<'a>(&'a self, query: &DeliveryQuery, position: i64, row: &'a EventRow) -> SmallVec<[&'a Delivery; 4]> {
        let event = &row.event;
        let is_other_event = query.event_type.as_ref().is_some_and(|wanted| *wanted != event.event_type)
            || query.key.as_ref().is_some_and(|wanted| event.key.as_ref() != Some(wanted));
        if is_other_event {
            return SmallVec::new();
        }
        let handler = |delivery: &Delivery| &self.queues[delivery.queue].handler;
        let is_wanted = |delivery: &&Delivery| {
            query.status.is_none_or(|wanted| wanted == public_status(delivery.status))
                && query.handler.as_ref().is_none_or(|wanted| wanted == handler(delivery))
                && query.after.as_ref().is_none_or(|at| (at.position, &at.handler) < (position, handler(delivery)))
        };
        let mut found: SmallVec<[&Delivery; 4]> = row.deliveries.iter().filter(is_wanted).collect();
        found.sort_unstable_by_key(|delivery| handler(delivery));
        found
    }

    fn record(&self, row: &EventRow, delivery: &Delivery) -> DeliveryRecord {
        let event = &row.event;
        let id = DeliveryId::new(self.queues[delivery.queue].handler.clone(), event.id.clone());
        let (ended_at, token) = match delivery.status {
            Status::Pending => (None, None),
            Status::Processing { session } => {
                let token = LeaseToken { lane: row.lane, epoch: session, claims: delivery.claims };
                (None, Some(token.to_string()))
            }
            Status::Completed { at } | Status::Dead { at } => (Some(at), None),
        };
        DeliveryRecord {
            key: event.key.clone(),
            status: public_status(delivery.status),
            attempts: delivery.attempts,
            ended_at,
            token,
            last_error: delivery.last_error.clone(),
            ..DeliveryRecord::new(id, event.event_type.clone(), delivery.due_at, row.stored_at)
        }
    }

    /// Makes a dead delivery pending, due now, with a fresh budget of attempts.
    pub(super) fn requeue(&mut self, id: &DeliveryId, now: Timestamp) -> Requeued {
        let place = self.names.get(id.handler()).zip(self.ids.get(id.event_id()));
        let Some(place) = place.map(|(&queue, &position)| Place { queue, position }) else {
            return Requeued::Unknown;
        };
        match self.delivery(place).map(|(_, delivery)| delivery.status) {
            Some(Status::Dead { .. }) => {
                self.set_status(place, Some(Status::Pending), |delivery| {
                    delivery.attempts = 0;
                    delivery.due_at = now;
                });
                Requeued::Requeued
            }
            Some(Status::Pending | Status::Processing { .. }) => Requeued::NotDead,
            Some(Status::Completed { .. }) | None => Requeued::Unknown,
        }
    }

    pub(super) fn statistics(&self, now: Timestamp) -> Statistics {
        let mut statistics = Statistics::default();
        for queue in &self.queues {
            let Counts { pending, processing, completed, dead } = queue.counts;
            statistics.pending += pending;
            statistics.processing += processing;
            statistics.completed += completed;
            statistics.dead += dead;
        }
        let listed = self.queues.iter().filter_map(|queue| queue.due.first()).map(|&(due_at, _)| due_at);
        let chains = self.queues.iter().flat_map(|queue| queue.keys.values());
        let waiting = chains.flat_map(|chain| chain.pending.values()).copied();
        statistics.oldest_due_at = listed.chain(waiting).min().filter(|&due_at| due_at <= now);
        statistics
    }

    pub(super) fn backlog(&self) -> Vec<HandlerBacklog> {
        let unfinished = self.queues.iter().map(|queue| HandlerBacklog {
            handler: queue.handler.clone(),
            unfinished: queue.counts.pending + queue.counts.processing,
        });
        let mut backlog: Vec<HandlerBacklog> = unfinished.filter(|handler| handler.unfinished > 0).collect();
        backlog.sort_unstable_by(|one, other| one.handler.cmp(&other.handler));
        backlog
    }

    /// Deletes dead deliveries and completion records past their cutoffs, then the events that have nothing left and
    /// whose last completion (without one, whose storing) is past the cutoff.
    ///
    /// A call that ends at its limit leaves its place, so that many calls pass over the events once.
    pub(super) fn purge(&mut self, request: &PurgeRequest) -> Purged {
        let start = self.purge_from;
        let mut purged = Purged::default();
        let mut left = request.limit;
        let mut doomed: Vec<Doomed> = Vec::new();
        for (&position, row) in self.events.range(start..).chain(self.events.range(..start)) {
            let Some(found) = Doomed::find(position, row, request) else { continue };
            if left == 0 {
                purged.more = true;
                self.purge_from = position;
                break;
            }
            // An event goes with all it has, so a call may delete a few rows more than its limit.
            left = left.saturating_sub(found.queues.len() + usize::from(found.event));
            doomed.push(found);
        }
        for Doomed { position, queues, event } in doomed {
            for queue in queues {
                self.purge_delivery(Place { queue, position }, &mut purged);
            }
            if event && let Some(row) = self.events.remove(&position) {
                self.ids.remove(&row.event.id);
                purged.events += 1;
            }
        }
        purged
    }

    fn purge_delivery(&mut self, place: Place, purged: &mut Purged) {
        match self.delivery(place).map(|(_, delivery)| delivery.status) {
            Some(Status::Dead { .. }) => purged.dead += 1,
            Some(Status::Completed { .. }) => purged.records += 1,
            Some(Status::Pending | Status::Processing { .. }) | None => return,
        }
        self.set_status(place, None, |_| {});
    }
}

/// What of an event is to be purged: the deliveries in these queues, and the event itself.
struct Doomed {
    position: i64,
    queues: SmallVec<[usize; 2]>,
    event: bool,
}

impl Doomed {
    fn find(position: i64, row: &EventRow, request: &PurgeRequest) -> Option<Self> {
        let past = row.deliveries.iter().filter(|delivery| is_past(delivery, request));
        let queues: SmallVec<[usize; 2]> = past.map(|delivery| delivery.queue).collect();
        let last_use = row.completed_at.unwrap_or(row.stored_at);
        let event =
            queues.len() == row.deliveries.len() && request.completed_before.is_some_and(|before| last_use < before);
        (event || !queues.is_empty()).then_some(Self { position, queues, event })
    }
}

fn is_past(delivery: &Delivery, request: &PurgeRequest) -> bool {
    match delivery.status {
        Status::Pending | Status::Processing { .. } => false,
        Status::Completed { at } => request.completed_before.is_some_and(|before| at < before),
        Status::Dead { at } => request.dead_before.is_some_and(|before| at < before),
    }
}

fn public_status(status: Status) -> DeliveryStatus {
    match status {
        Status::Pending => DeliveryStatus::Pending,
        Status::Processing { .. } => DeliveryStatus::Processing,
        Status::Completed { .. } => DeliveryStatus::Completed,
        Status::Dead { .. } => DeliveryStatus::Dead,
    }
}
