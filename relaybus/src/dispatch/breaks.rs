//! Transactions that broke under handlers that succeeded, and whose fault that is.
//!
//! A server that restarts, fails over or ends connections breaks the transactions of all handlers that run at that moment:
//! their deliveries must not lose an attempt for it. A handler that ends its own backend, or leaves its connection idle for
//! longer than something on the way to the server allows, breaks its transaction every time: its delivery must not be tried
//! without end. One break of either kind looks like the other; what tells them apart is that only the second repeats.
//!
//! # The rule
//!
//! A delivery whose handler had succeeded when the connection of its transaction was found lost, before its commit or in it
//! with nothing committed, goes back uncharged, up to [`FREE`] times in a row; from then on each break is a failed attempt, with
//! its backoff, until one commits. A transaction that could not be opened, and a completion that the database refused for
//! another reason (it is read-only, its disk is full), is never charged. A handler that returns its client's error has failed, and is charged as any that fails.
//!
//! Each bus counts for itself, so a delivery that moves between processes gets as many more. For whom there is no room, each
//! break is charged: the count ends in any case.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::store::{DeliveryId, Lease};

/// Breaks in a row that cost a delivery nothing: more than a restart, or a fail-over and the way back, makes.
const FREE: u32 = 3;
/// Deliveries that are counted at once.
const ROOM: usize = 10_000;
/// For lack of room, who has not broken for this long is forgotten: another dispatcher finished it.
const KEPT: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy, Debug)]
struct Count {
    breaks: u32,
    last: Duration,
}

/// The deliveries whose last attempts broke.
#[derive(Debug, Default)]
pub(crate) struct Breaks(Mutex<HashMap<DeliveryId, Count>>);

impl Breaks {
    /// Counts a break at `now` of the monotonic clock. Whether it is charged.
    pub(super) fn is_charged(&self, lease: &Lease, now: Duration) -> bool {
        let id = lease.delivery_id();
        let mut counts = self.counts();
        if counts.len() >= ROOM && !counts.contains_key(&id) {
            counts.retain(|_, count| now.saturating_sub(count.last) < KEPT);
            if counts.len() >= ROOM {
                return true;
            }
        }
        let count = counts.entry(id).or_insert(Count { breaks: 0, last: now });
        *count = Count { breaks: count.breaks.saturating_add(1), last: now };
        count.breaks > FREE
    }

    /// It committed, or it is dead: what comes after is not in the row.
    pub(super) fn ended(&self, lease: &Lease) {
        let mut counts = self.counts();
        if !counts.is_empty() {
            counts.remove(&lease.delivery_id());
        }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<DeliveryId, Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::event::EventId;
    use crate::handler_id::HandlerId;
    use crate::store::LeaseToken;

    fn lease(number: usize) -> Lease {
        let (event, handler) = (EventId::new(format!("e{number}")).unwrap(), HandlerId::new("h").unwrap());
        let token = LeaseToken { lane: 0, epoch: 1, claims: 0 };
        Lease::new(event, handler, None, 0, Timestamp::from_micros(0), token)
    }

    #[test]
    fn breaks_in_a_row_are_charged_in_the_end() {
        let breaks = Breaks::default();
        for row in 0..2 {
            for number in 1..=5 {
                let charged = breaks.is_charged(&lease(0), Duration::from_secs(number));
                assert_eq!(charged, number > 3, "break {number} of row {row}");
            }
            breaks.ended(&lease(0));
        }
    }

    #[test]
    fn without_room_the_oldest_are_forgotten_and_the_others_charged() {
        let breaks = Breaks::default();
        for number in 0..ROOM {
            assert!(!breaks.is_charged(&lease(number), Duration::ZERO));
        }
        assert!(breaks.is_charged(&lease(ROOM), KEPT / 2), "it has no room");
        assert!(!breaks.is_charged(&lease(ROOM), KEPT), "the others are past");
        assert_eq!(breaks.counts().len(), 1);
    }
}
