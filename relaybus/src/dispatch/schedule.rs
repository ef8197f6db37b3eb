//! When to claim: the scheduling rules, as a pure state machine over monotonic time.
//!
//! The rules:
//!
//! 1. A claim that fills its batch is followed by the next one at once, as far as there are slots.
//! 2. Otherwise the dispatcher sleeps until it is woken: by a publish, by the store, or by settled deliveries once 70 % of
//!    a batch is free again, so that slots are refilled in groups.
//! 3. A smaller number of free slots is refilled after 10 ms without a claim.
//! 4. Wake-ups within 5 ms of a claim are merged into one claim.
//! 5. Settled unkeyed deliveries do not trigger a claim when their handler's last claim got less than it asked for. A
//!    settled keyed delivery always may: it unblocks the next of its key.
//! 6. The poll interval is the safety net; it runs from the last claim.

use std::time::Duration;

/// Free slots are refilled without a wait from this share of a batch on, in percent.
pub(crate) const REFILL_PERCENT: usize = 70;
/// A smaller number of free slots is refilled after this time without a claim.
pub(crate) const REFILL_DELAY: Duration = Duration::from_millis(10);
/// Wake-ups within this time of a claim are merged into one.
pub(crate) const MERGE_WINDOW: Duration = Duration::from_millis(5);

/// What the dispatcher should do about claiming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Claim now.
    Claim,
    /// Nothing until then.
    WaitUntil(Duration),
}

/// The state of the rules. Times are monotonic.
#[derive(Debug)]
pub(crate) struct Schedule {
    batch: usize,
    poll_interval: Duration,
    last_claim: Option<Duration>,
    /// The last claim filled its batch: more may be due.
    more: bool,
    woken: bool,
    /// Something settled since the last claim that may have made room for a delivery that is due.
    refillable: bool,
    /// No claim before this, after the store failed.
    held_until: Duration,
}

impl Schedule {
    pub(crate) fn new(batch: usize, poll_interval: Duration) -> Self {
        Self {
            batch,
            poll_interval,
            last_claim: None,
            more: false,
            woken: false,
            refillable: false,
            held_until: Duration::ZERO,
        }
    }

    /// A publish, the store, or a user says that something may be due.
    pub(crate) fn wake(&mut self) {
        self.woken = true;
    }

    /// A delivery settled; `useful` when rule 5 lets it trigger a claim.
    pub(crate) fn settled(&mut self, useful: bool) {
        self.refillable |= useful;
    }

    /// A claim was sent at `now`; `more` when it filled its batch.
    pub(crate) fn claimed(&mut self, now: Duration, more: bool) {
        self.last_claim = Some(now);
        self.more = more;
        self.woken = false;
        self.refillable = false;
    }

    /// The store failed: no claim before `until`, but one then.
    pub(crate) fn hold(&mut self, until: Duration) {
        self.held_until = until;
        self.woken = true;
    }

    /// What to do at `now` with `free` slots.
    pub(crate) fn next(&self, now: Duration, free: usize) -> Next {
        if now < self.held_until {
            return Next::WaitUntil(self.held_until);
        }
        let Some(last) = self.last_claim else {
            return if free > 0 { Next::Claim } else { Next::WaitUntil(now + self.poll_interval) };
        };
        let poll_at = last + self.poll_interval;
        if free == 0 {
            // Nothing can be claimed; a slot that becomes free is a reason of its own to look again.
            return Next::WaitUntil(poll_at.max(now + self.poll_interval));
        }
        let mut at = poll_at;
        if self.woken {
            at = at.min(last + MERGE_WINDOW);
        }
        if self.more || self.refillable {
            let grouped = free * 100 >= self.batch * REFILL_PERCENT;
            at = at.min(if grouped { now } else { last + REFILL_DELAY });
        }
        if at <= now { Next::Claim } else { Next::WaitUntil(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn after_claim(more: bool) -> Schedule {
        let mut schedule = Schedule::new(10, ms(1000));
        schedule.claimed(ms(100), more);
        schedule
    }

    #[test]
    fn the_first_claim_is_at_once() {
        assert_eq!(Schedule::new(10, ms(1000)).next(ms(0), 10), Next::Claim);
    }

    #[test]
    fn a_full_claim_is_followed_by_the_next_at_once() {
        assert_eq!(after_claim(true).next(ms(100), 10), Next::Claim);
    }

    #[test]
    fn a_claim_that_was_not_full_waits_for_the_poll() {
        assert_eq!(after_claim(false).next(ms(100), 10), Next::WaitUntil(ms(1100)));
        assert_eq!(after_claim(false).next(ms(1100), 10), Next::Claim);
    }

    #[test]
    fn slots_are_refilled_in_groups_of_seventy_percent() {
        let schedule = after_claim(true);
        assert_eq!(schedule.next(ms(101), 6), Next::WaitUntil(ms(110)));
        assert_eq!(schedule.next(ms(101), 7), Next::Claim);
    }

    #[test]
    fn a_smaller_number_is_refilled_after_ten_milliseconds() {
        let schedule = after_claim(true);
        assert_eq!(schedule.next(ms(109), 1), Next::WaitUntil(ms(110)));
        assert_eq!(schedule.next(ms(110), 1), Next::Claim);
    }

    #[test]
    fn wake_ups_within_five_milliseconds_are_merged() {
        let mut schedule = after_claim(false);
        schedule.wake();
        schedule.wake();
        assert_eq!(schedule.next(ms(102), 10), Next::WaitUntil(ms(105)));
        assert_eq!(schedule.next(ms(105), 10), Next::Claim);
        schedule.claimed(ms(105), false);
        assert_eq!(schedule.next(ms(106), 10), Next::WaitUntil(ms(1105)));
    }

    #[test]
    fn a_late_wake_up_claims_at_once() {
        let mut schedule = after_claim(false);
        schedule.wake();
        assert_eq!(schedule.next(ms(300), 1), Next::Claim);
    }

    #[test]
    fn settled_deliveries_trigger_only_when_more_may_be_due() {
        let mut schedule = after_claim(false);
        schedule.settled(false);
        assert_eq!(schedule.next(ms(120), 10), Next::WaitUntil(ms(1100)));
        schedule.settled(true);
        assert_eq!(schedule.next(ms(120), 10), Next::Claim);
    }

    #[test]
    fn nothing_is_claimed_without_a_slot() {
        let mut schedule = after_claim(true);
        schedule.wake();
        assert!(matches!(schedule.next(ms(5000), 0), Next::WaitUntil(_)));
        assert_eq!(schedule.next(ms(5000), 1), Next::Claim);
    }

    #[test]
    fn a_failing_store_is_left_alone_for_a_while() {
        let mut schedule = after_claim(true);
        schedule.hold(ms(600));
        assert_eq!(schedule.next(ms(500), 10), Next::WaitUntil(ms(600)));
        assert_eq!(schedule.next(ms(600), 10), Next::Claim);
    }

    #[test]
    fn a_wake_up_that_came_during_a_claim_claims_again() {
        let mut schedule = after_claim(false);
        schedule.wake();
        assert_eq!(schedule.next(ms(106), 10), Next::Claim);
    }
}
