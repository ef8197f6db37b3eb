//! Claiming: the due heads of the queues that were asked for, oldest first, each with the run behind it.
//!
//! A claim looks at the first entry of each queue it was given, and at the followers it takes. What waits behind a head,
//! is due later or belongs to another handler is not looked at, however much there is of it.

use smallvec::SmallVec;

use super::state::{Due, Place, State, Status};
use crate::clock::Timestamp;
use crate::store::{ClaimRequest, Claimed, Lease, LeaseToken, Run};

/// A handler of a claim: its queue, how many runs may still be taken from it, and its next delivery if it is due.
struct Source {
    queue: usize,
    left: usize,
    next: Option<Due>,
}

impl State {
    /// Claims for `session`. The flag is whether more is due of the handlers that were asked for.
    pub(super) fn claim(&mut self, session: i64, request: &ClaimRequest<'_>, now: Timestamp) -> (Vec<Run>, bool) {
        let mut sources = self.sources(request, now);
        let mut runs = Vec::new();
        while runs.len() < request.limit
            && let Some(source) = oldest(&mut sources)
            && let Some((_, position)) = source.next
        {
            if runs.is_empty() {
                runs.reserve(request.limit.min(MOST_RESERVED));
            }
            runs.push(self.claim_run(session, Place { queue: source.queue, position }, request.run_length, now));
            source.left -= 1;
            source.next = self.queues[source.queue].first_due(now);
        }
        let more = sources.iter().any(|source| source.next.is_some());
        (runs, more)
    }

    /// The queues to claim from, each once, with its slots.
    fn sources(&self, request: &ClaimRequest<'_>, now: Timestamp) -> SmallVec<[Source; 8]> {
        let mut sources: SmallVec<[Source; 8]> = SmallVec::new();
        for slots in request.handlers {
            let Some(&queue) = self.names.get(&slots.handler) else { continue };
            match sources.iter_mut().find(|source| source.queue == queue) {
                Some(source) => source.left = source.left.saturating_add(slots.limit),
                None => sources.push(Source { queue, left: slots.limit, next: self.queues[queue].first_due(now) }),
            }
        }
        sources
    }

    /// Claims a head and the due deliveries behind it.
    ///
    /// A delivery that was claimed before may be the one that its worker died of, so it runs alone: then the next
    /// death is charged to it and to nobody else.
    fn claim_run(&mut self, session: i64, head: Place, run_length: usize, now: Timestamp) -> Run {
        let followers = if run_length > 1 { self.followers(head, run_length - 1, now) } else { SmallVec::new() };
        let mut deliveries = SmallVec::with_capacity(1 + followers.len());
        deliveries.extend(self.hold(session, head));
        for position in followers {
            deliveries.extend(self.hold(session, Place { position, ..head }));
        }
        Run { deliveries }
    }

    fn followers(&self, head: Place, most: usize, now: Timestamp) -> SmallVec<[i64; 8]> {
        let never_claimed = |place| self.delivery(place).is_some_and(|(_, delivery)| delivery.claims == 0);
        let key = self.events.get(&head.position).and_then(|row| row.event.key.as_ref());
        let queue = &self.queues[head.queue];
        let Some(chain) = key.and_then(|key| queue.keys.get(key)).filter(|_| never_claimed(head)) else {
            return SmallVec::new();
        };
        let behind = chain.pending.iter().skip(1).take(most);
        behind
            .take_while(|&(&position, &due_at)| due_at <= now && never_claimed(Place { position, ..head }))
            .map(|(&position, _)| position)
            .collect()
    }

    fn hold(&mut self, session: i64, place: Place) -> Option<Claimed> {
        let (row, delivery) = self.delivery(place)?;
        let event = row.event.clone();
        let token = LeaseToken { lane: row.lane, epoch: session, claims: delivery.claims };
        let handler = self.queues[place.queue].handler.clone();
        let lease = Lease::new(event.id.clone(), handler, event.key.clone(), place.position, delivery.due_at, token);
        let claimed = Claimed::new(lease, event, delivery.attempts, row.stored_at);
        self.set_status(place, Some(Status::Processing { session }), |_| {});
        Some(claimed)
    }
}

/// The source with slots whose next delivery is the oldest. There are few sources, and each has its next at hand.
fn oldest(sources: &mut [Source]) -> Option<&mut Source> {
    let open = sources.iter_mut().filter(|source| source.left > 0 && source.next.is_some());
    open.min_by_key(|source| source.next)
}

/// Runs that an answer has room for without growing.
const MOST_RESERVED: usize = 256;
