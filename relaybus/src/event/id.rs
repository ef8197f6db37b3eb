//! The identity of an event.

use std::sync::Mutex;
use std::sync::PoisonError;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::task::Chance;
use crate::text::text_newtype;

text_newtype! {
    /// The identity of an event, on which publishing and receiving are idempotent.
    ///
    /// The bus makes version 7 UUIDs: they rise with time, which keeps a store's index small. A caller may use any
    /// text of its own, quotes and line breaks included.
    EventId
}

/// Longest event id, in bytes.
const MAX_ID_BYTES: usize = 1024;

impl EventId {
    /// An id of the caller's own.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when the text is empty, longer than 1024 bytes or contains NUL.
    pub fn new(id: impl Into<String>) -> Result<Self> {
        let id = id.into();
        if id.is_empty() || id.len() > MAX_ID_BYTES || id.contains('\0') {
            return Err(Error::configuration(format!(
                "an event id has 1 to {MAX_ID_BYTES} bytes and no NUL character, this one has {} bytes: pass a shorter or cleaned one",
                id.len()
            )));
        }
        Ok(Self(id.into()))
    }
}

impl std::str::FromStr for EventId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

/// Makes version 7 UUIDs that rise strictly within one bus, whatever the clock does.
#[derive(Debug, Default)]
pub(crate) struct EventIds {
    last: Mutex<u128>,
}

/// The 74 random bits of a version 7 UUID as one number; of these the top two are left clear, as room to count up.
const RANDOM_BITS: u32 = 74;

impl EventIds {
    pub(crate) fn next(&self, now: Timestamp, chance: &Chance) -> EventId {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0) & 0xFFFF_FFFF_FFFF;
        let random = chance.bits() >> (128 - RANDOM_BITS + 2);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = (u128::from(millis) << RANDOM_BITS) | random;
        // A clock that stands still or goes back counts up from the last id (RFC 9562, section 6.2, method 2).
        *last = if fresh > *last { fresh } else { *last + 1 + (random & 0xFF_FFFF) };
        EventId(uuid_text(*last).into())
    }
}

fn uuid_text(value: u128) -> String {
    let millis = value >> RANDOM_BITS;
    let rand_a = (value >> 62) & 0xFFF;
    let rand_b = value & ((1 << 62) - 1);
    let bits = (millis << 80) | (0x7 << 76) | (rand_a << 64) | (0b10 << 62) | rand_b;
    uuid::Uuid::from_u128(bits).hyphenated().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_even_when_the_clock_goes_back() {
        let ids = EventIds::default();
        let chance = Chance::seeded(7);
        let mut last = String::new();
        for step in 0..10_000_i64 {
            let now = Timestamp::from_micros(1_700_000_000_000_000 - step * 700);
            let id = ids.next(now, &chance);
            assert!(id.as_str() > last.as_str(), "{id} after {last}");
            let parsed = uuid::Uuid::parse_str(id.as_str()).unwrap();
            assert_eq!(parsed.get_version_num(), 7);
            last = id.as_str().to_owned();
        }
    }

    #[test]
    fn refuses_what_cannot_be_stored() {
        assert!(EventId::new("").is_err());
        assert!(EventId::new("a\0b").is_err());
        assert!(EventId::new("x".repeat(1025)).is_err());
        assert!(EventId::new("it's \"quoted\"\n").is_ok());
    }
}
