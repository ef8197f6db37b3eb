//! Leases: what names a claimed delivery, and the token that fences every write about it.

use std::fmt;
use std::time::Duration;

use super::admin::DeliveryId;
use crate::clock::Timestamp;
use crate::event::{EventId, OrderingKey};
use crate::handler_id::HandlerId;

/// What a dispatcher says when it opens a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionRequest {
    /// A fresh random name, for the store's own records and for people.
    pub owner: String,
    /// Every handler this process can run.
    pub handlers: Vec<HandlerId>,
    /// How long the session lives without a renewal.
    pub lease: Duration,
    /// The time of opening.
    pub now: Timestamp,
}

impl SessionRequest {
    /// A request.
    #[must_use]
    pub fn new(owner: impl Into<String>, handlers: Vec<HandlerId>, lease: Duration, now: Timestamp) -> Self {
        Self { owner: owner.into(), handlers, lease, now }
    }
}

/// A claimed delivery, named by everything a store needs to find its row again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// The event.
    pub event_id: EventId,
    /// The handler.
    pub handler: HandlerId,
    /// The ordering key of the event.
    pub key: Option<OrderingKey>,
    /// The store's own number of the delivery or of its event.
    pub position: i64,
    /// When the delivery became due, as stored: part of its place in SQL stores.
    pub due_at: Timestamp,
    /// The token of this claim.
    pub token: LeaseToken,
}

impl Lease {
    /// A lease.
    #[must_use]
    pub fn new(
        event_id: EventId,
        handler: HandlerId,
        key: Option<OrderingKey>,
        position: i64,
        due_at: Timestamp,
        token: LeaseToken,
    ) -> Self {
        Self { event_id, handler, key, position, due_at, token }
    }

    /// The public name of the delivery.
    #[must_use]
    pub fn delivery_id(&self) -> DeliveryId {
        DeliveryId::new(self.handler.clone(), self.event_id.clone())
    }
}

/// The fencing token of a claim, printed as `<lane>:<epoch>:<claims>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseToken {
    /// The lane of the delivery: [`lane_of`] its key, or of its event id.
    pub lane: u8,
    /// The session (or the epoch of its ownership) that claimed it.
    pub epoch: i64,
    /// Claims of this delivery that ended before this one. Strictly increasing.
    pub claims: i64,
}

impl fmt::Display for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.lane, self.epoch, self.claims)
    }
}

/// What became of a lease whose transaction ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// The delivery is there under this token: its transaction did not commit.
    Held,
    /// The delivery is gone: it completed.
    Gone,
    /// The delivery is there under another token: the lease was lost.
    Lost,
}

/// Lanes that deliveries are spread over.
pub const LANES: usize = 256;

/// The lane of a delivery: a stable hash (FNV-1a, 64 bit, folded to 8) of its key, or of its event id without one.
///
/// ```
/// use relaybus::store::lane_of;
/// assert_eq!(lane_of("order-1"), lane_of("order-1"));
/// ```
#[must_use]
pub fn lane_of(text: &str) -> u8 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let folded = hash ^ (hash >> 32);
    let folded = folded ^ (folded >> 16);
    let folded = folded ^ (folded >> 8);
    folded.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_spread() {
        let mut count = [0_u32; LANES];
        for i in 0..25_600 {
            count[usize::from(lane_of(&format!("order-{i}")))] += 1;
        }
        let (least, most) = (count.iter().min().unwrap(), count.iter().max().unwrap());
        assert!(*least > 50 && *most < 160, "{least} to {most} of a mean of 100");
    }

    #[test]
    fn lanes_never_change() {
        // Stored by SQL stores: a change of the hash would move every key.
        assert_eq!([lane_of(""), lane_of("a"), lane_of("order-1")], LANES_OF_SAMPLES);
    }

    const LANES_OF_SAMPLES: [u8; 3] = [225, 187, 42];
}
