//! Keys whose lock somebody keeps: what is published with them goes by the pool at once.
//!
//! An event whose key is locked by a transaction of the application costs a publishing connection its whole `lock_timeout`. With
//! many of them, everybody else would wait behind; so a key that a statement waited for in vain is remembered for a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use relaybus::Timestamp;
use relaybus::store::AppendBatch;

use super::args::{key_number, key_slot};

/// How long a key counts as locked after somebody waited for it in vain.
const REMEMBERED: Duration = Duration::from_secs(1);
/// Locks that are remembered before those that are over are looked for.
const MANY: usize = 64;

/// The locks by their numbers, and until when each counts as held.
#[derive(Debug, Default)]
pub(super) struct HeldKeys(Mutex<HashMap<i32, Timestamp>>);

impl HeldKeys {
    /// A statement with only these events did not get its locks in time.
    pub(super) fn note(&self, batch: &AppendBatch) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MANY {
            held.retain(|_, until| *until > batch.now);
        }
        held.extend(slots_of(batch).map(|slot| (slot, batch.now.after(REMEMBERED))));
    }

    /// Whether an event of the batch is likely to wait for its key.
    pub(super) fn meets(&self, batch: &AppendBatch) -> bool {
        let mut slots = slots_of(batch).peekable();
        if slots.peek().is_none() {
            return false;
        }
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !held.is_empty() && slots.any(|slot| held.get(&slot).is_some_and(|until| *until > batch.now))
    }
}

fn slots_of(batch: &AppendBatch) -> impl Iterator<Item = i32> {
    batch.events.iter().filter_map(|event| event.envelope.key.as_ref()).map(|key| key_slot(key_number(key.as_str())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use relaybus::store::NewEvent;
    use relaybus::{Envelope, EventId, EventType, OrderingKey, RawPayload};

    use super::*;

    fn batch(keys: &[Option<&str>], seconds: u64) -> AppendBatch {
        let now = Timestamp::EPOCH.after(Duration::from_secs(1_000 + seconds));
        let event = |key: &Option<&str>| {
            let id = EventId::new("id").expect("an id");
            let kind = EventType::new("test.happened").expect("a type");
            let mut envelope = Envelope::new(id, kind, "tests", RawPayload::stored("1".to_owned()), now);
            envelope.key = key.map(|key| OrderingKey::new(key).expect("a key"));
            NewEvent::new(envelope, Arc::from([]), now)
        };
        AppendBatch::new(keys.iter().map(event).collect(), now)
    }

    #[test]
    fn a_key_that_was_waited_for_in_vain_is_remembered_for_a_second() {
        let held = HeldKeys::default();
        assert!(!held.meets(&batch(&[Some("a")], 0)), "nobody waited yet");
        held.note(&batch(&[Some("a")], 0));
        assert!(held.meets(&batch(&[None, Some("b"), Some("a")], 0)));
        assert!(!held.meets(&batch(&[None, Some("b")], 0)), "of others");
        assert!(!held.meets(&batch(&[Some("a")], 1)), "a second later");
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let held = HeldKeys::default();
        for number in 0..1_000 {
            held.note(&batch(&[Some(&number.to_string())], number));
        }
        assert!(held.0.lock().expect("nobody panicked").len() <= MANY);
    }
}
