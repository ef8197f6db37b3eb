//! The binds of a turn, in the order of its text ([`super::turn_sql::turn`]): completions with room to spare, then the
//! fixed ones, then the handlers.

use std::sync::Arc;

use relaybus::store::{ClaimRequest, Completed, HandlerSlots, RunPart, TurnRequest};
use relaybus::{HandlerId, Timestamp};

use super::Inner;
use super::args::Binds;
use super::turn_sql::{COMPLETION_BINDS, ClaimShape, FIXED_BINDS, TurnShape};

/// Most bytes of payload and headers that come back with a claim, whatever its limit; larger ones are read apart.
const CLAIM_BYTES: usize = 32 * 1024 * 1024;
/// Most of one head.
const HEAD_BYTES: usize = 256 * 1024;
/// Most that the followers of one run may have together.
pub(super) const RUN_BYTES: usize = 1024 * 1024;
/// Most that the followers of all runs may have together.
const FOLLOWERS_BYTES: usize = 64 * 1024 * 1024;

/// What a turn claims at most, of the handlers it reads this time.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) handlers: Vec<&'a HandlerSlots>,
    pub(super) limit: usize,
    pub(super) run_length: usize,
    /// Whether followers are read along.
    pub(super) followers: bool,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(claim: &ClaimRequest<'a>, handlers: Vec<&'a HandlerSlots>, limit: usize, keyed: bool) -> Self {
        Self { handlers, limit, run_length: claim.run_length, followers: claim.run_length > 1 && keyed }
    }

    fn prefetch(&self) -> usize {
        self.run_length.saturating_sub(1)
    }

    /// Most bytes of a head's headers and payload.
    pub(super) fn head_cap(&self) -> usize {
        HEAD_BYTES.min(CLAIM_BYTES / self.limit.max(1))
    }

    /// Most bytes of a follower's headers and payload.
    pub(super) fn follower_cap(&self) -> usize {
        let each = self.prefetch().max(1);
        (RUN_BYTES / each).min(FOLLOWERS_BYTES / each / self.limit.max(1))
    }

    fn limited(&self) -> bool {
        self.handlers.iter().any(|slots| slots.limit < self.limit)
    }
}

/// Shape and binds of a turn's text.
pub(super) fn turn_of(
    inner: &Inner,
    me: i64,
    request: &TurnRequest<'_>,
    completed: &[Completed],
    wanted: Option<&Wanted<'_>>,
) -> (TurnShape, Binds) {
    let claim = wanted.map(|wanted| ClaimShape {
        arms: room(wanted.handlers.len()),
        limited: wanted.limited(),
        followers: wanted.followers,
    });
    let shape = TurnShape { renew: request.renew.is_some(), completions: room(completed.len()), claim };
    let arms = claim.map_or(0, |claim| claim.arms * 2);
    let mut binds = Binds::with_capacity(shape.completions * COMPLETION_BINDS + FIXED_BINDS + arms);
    bind_completions(inner, &mut binds, completed, request.now);
    binds.null((shape.completions - completed.len()) * COMPLETION_BINDS);
    binds.push(me);
    binds.push(request.now.as_micros());
    binds.push(request.renew.map(Timestamp::as_micros));
    if let Some(wanted) = wanted {
        for number in [wanted.limit, wanted.prefetch(), wanted.head_cap(), wanted.follower_cap()] {
            binds.push(integer(number));
        }
        let limited = wanted.limited();
        for arm in 0..claim.map_or(0, |claim| claim.arms) {
            let slots = wanted.handlers.get(arm);
            binds.push(slots.map(|slots| slots.handler.as_str()));
            if limited {
                binds.push(slots.map_or(0, |slots| integer(slots.limit.min(wanted.limit))));
            }
        }
    }
    (shape, binds)
}

/// The binds of looking whether one of the handlers has something due, and their room.
pub(super) fn probe_of(me: i64, now: Timestamp, handlers: &[&HandlerSlots]) -> (usize, Binds) {
    let arms = room(handlers.len());
    let mut binds = Binds::with_capacity(2 + arms).with(me).with(now.as_micros());
    for slots in handlers {
        binds.push(slots.handler.as_str());
    }
    binds.null(arms - handlers.len());
    (arms, binds)
}

/// Seven binds a completion; see the view `completions` in `schema.sql`.
pub(super) fn bind_completions(inner: &Inner, binds: &mut Binds, completed: &[Completed], now: Timestamp) {
    let latest = super::purge::latest_creation(now);
    let held = inner.held();
    let mut last: Option<(&HandlerId, Arc<str>)> = None;
    for done in completed {
        let lease = &done.lease;
        let known = held.get(&super::lease::held_key(lease));
        let handler = match &last {
            Some((handler, text)) if **handler == lease.handler => Arc::clone(text),
            _ => {
                let text: Arc<str> = lease.handler.as_str().into();
                last = Some((&lease.handler, Arc::clone(&text)));
                text
            }
        };
        binds.push(handler);
        binds.push(lease.due_at.as_micros());
        binds.push(lease.position);
        binds.push(lease.token.claims);
        binds.push(lease.key.as_ref().map(|key| key.as_str()));
        binds.push(match done.part {
            RunPart::Last => None,
            RunPart::Continues => Some(known.and_then(|known| known.next).unwrap_or(0)),
        });
        // Recorded when it is late, and when that is not known.
        binds.push(known.is_none_or(|known| known.stored_at.as_micros() < latest).then_some(latest));
    }
}

/// Room in a text: a power of two or one and a half of it, or none. So few texts serve every batch, and at most a third
/// of one is empty.
fn room(items: usize) -> usize {
    let power = items.next_power_of_two();
    match items {
        0 => 0,
        _ if power >= 8 && power / 4 * 3 >= items => power / 4 * 3,
        _ => power,
    }
}

fn integer(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #[test]
    fn room_is_tight_and_takes_few_sizes() {
        let sizes: std::collections::BTreeSet<usize> = (0..=512).map(super::room).collect();
        assert!(sizes.len() < 20, "{sizes:?}");
        assert!((0..=512).all(|items| super::room(items) >= items));
        assert_eq!([super::room(0), super::room(1), super::room(10), super::room(200)], [0, 1, 12, 256]);
    }
}
