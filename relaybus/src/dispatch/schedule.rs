//! When to claim: the scheduling rules, as a pure state machine over monotonic time.
//!
//! The rules:
//!
//! 1. A claim that fills its batch is followed by the next one at once, as far as there are slots.
//! 2. Otherwise the dispatcher sleeps until it is woken: by a publish, by the store, or by settled deliveries once 70 % of
//!    a batch is free again, so that slots are refilled in groups.
//! 3. A smaller number of free slots is refilled after 10 ms without a claim.
//! 4. Wake-ups soon after a claim are merged into one claim: within three times what the claim took, but at least 1 ms and at
//!    most 5 ms. So a store that answers fast is asked soon, and a busy one gets fewer and larger claims.
//! 5. Settled unkeyed deliveries do not trigger a claim when their handler's last claim got less than it asked for. A
//!    settled keyed delivery always may: it unblocks the next of its key.
//! 6. Completions and claims share a turn: one that writes completions claims too when the dispatcher was woken, and while
//!    wake-ups come close to each other, completions wait for the next one, at most for their window.
//! 7. The poll interval is the safety net; it runs from the last claim.

use std::time::Duration;

/// Free slots are refilled without a wait from this share of a batch on, in percent.
pub(crate) const REFILL_PERCENT: usize = 70;
/// A smaller number of free slots is refilled after this time without a claim.
pub(crate) const REFILL_DELAY: Duration = Duration::from_millis(10);
/// Wake-ups that come this close to each other let completions wait for the next one.
const CLOSE: Duration = Duration::from_millis(4);
/// Wake-ups within so many times the length of a claim are merged into one,
const MERGE_TIMES: u32 = 3;
/// but within this time in any case,
const SHORTEST_MERGE: Duration = Duration::from_millis(1);
/// and within no more than this; the specification has nothing but this one.
pub(crate) const LONGEST_MERGE: Duration = Duration::from_millis(5);

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
    /// When the last two wake-ups were noticed.
    wakes: [Duration; 2],
    /// For how long after a claim wake-ups are merged.
    merge: Duration,
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
            wakes: [Duration::ZERO; 2],
            merge: LONGEST_MERGE,
            refillable: false,
            held_until: Duration::ZERO,
        }
    }

    /// A publish, the store, or a user says that something may be due.
    pub(crate) fn wake(&mut self) {
        self.woken = true;
    }

    /// The same, noticed at `now`.
    pub(crate) fn woken(&mut self, now: Duration) {
        self.woken = true;
        if now > self.wakes[1] {
            self.wakes = [self.wakes[1], now];
        }
    }

    /// Whether the next wake-up is likely to come within the window of completions.
    pub(crate) fn expects_wake(&self, now: Duration) -> bool {
        self.wakes[0] > Duration::ZERO && now.saturating_sub(self.wakes[0]) <= CLOSE
    }

    /// A claim that was sent at `sent` was answered at `now`.
    pub(crate) fn answered(&mut self, sent: Duration, now: Duration) {
        self.merge = (now.saturating_sub(sent) * MERGE_TIMES).clamp(SHORTEST_MERGE, LONGEST_MERGE);
    }

    /// Whether a turn that writes completions claims too.
    pub(crate) fn claims_along(&self, now: Duration, free: usize) -> bool {
        self.woken && free > 0 && now >= self.held_until
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
            at = at.min(last + self.merge);
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
    fn a_fast_store_is_asked_soon_and_a_slow_one_after_five_milliseconds() {
        for (took, asked_at) in [(0, 101), (1, 103), (2, 105), (60, 105)] {
            let mut schedule = after_claim(false);
            schedule.answered(ms(100), ms(100 + took));
            schedule.wake();
            assert_eq!(schedule.next(ms(100), 10), Next::WaitUntil(ms(asked_at)), "a claim of {took} ms");
        }
    }

    #[test]
    fn completions_take_a_claim_along_when_it_was_woken() {
        let mut schedule = after_claim(false);
        assert!(!schedule.claims_along(ms(101), 10), "nobody woke it");
        schedule.wake();
        assert!(schedule.claims_along(ms(101), 10));
        assert!(!schedule.claims_along(ms(101), 0), "nothing is free");
        schedule.hold(ms(600));
        assert!(!schedule.claims_along(ms(500), 10), "a store that failed is left alone");
    }

    #[test]
    fn wake_ups_close_to_each_other_let_completions_wait() {
        let mut schedule = after_claim(false);
        schedule.woken(ms(100));
        schedule.woken(ms(100));
        assert!(!schedule.expects_wake(ms(100)), "they are one");
        schedule.woken(ms(103));
        assert!(schedule.expects_wake(ms(104)));
        assert!(!schedule.expects_wake(ms(105)), "they have stopped");
        schedule.woken(ms(110));
        assert!(!schedule.expects_wake(ms(110)), "they are far from each other");
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
