//! What a turn claimed, as it comes back: deliveries with their events, packed into one value (see `turn_sql`).
//!
//! A value that cannot be read breaks its own delivery and no other: the lengths of its texts are told before them, so
//! the next delivery is found whatever is in this one.

use std::sync::Arc;

use relaybus::store::{Claimed, Lease, LeaseToken, lane_of};
use relaybus::{Envelope, EventId, EventType, HandlerId, Headers, OrderingKey, RawPayload, Timestamp};

use super::args::decode_id;

/// A claimed delivery with its event.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) handler: HandlerId,
    pub(super) due_at: Timestamp,
    pub(super) position: i64,
    pub(super) claims: i64,
    pub(super) key: Option<OrderingKey>,
    pub(super) stored_at: Timestamp,
    /// Bytes of the payload and the headers.
    pub(super) bytes: usize,
    /// Headers and payload; none of a large event, whose are read apart.
    pub(super) body: Option<(Headers, RawPayload)>,
    attempts: u32,
    envelope: Envelope<()>,
}

/// A delivery whose event cannot be read: another program wrote to the store.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) handler: String,
    pub(super) due_at: i64,
    pub(super) position: i64,
    pub(super) claims: i64,
    pub(super) key: Option<String>,
    pub(super) reason: String,
}

/// Numbers of a delivery in their order.
const NUMBERS: usize = 15;

/// Reads packed deliveries one after another. Names that repeat are shared.
#[derive(Debug)]
pub(super) struct Unpacker<'r> {
    rest: &'r [u8],
    cap: usize,
    handler: Option<HandlerId>,
    event_type: Option<EventType>,
    source: Option<Arc<str>>,
}

/// The value is not what the text of a turn makes: SQLite or the file is at fault.
#[derive(Debug)]
pub(super) struct Malformed;

impl<'r> Unpacker<'r> {
    /// `cap`: the most bytes of headers and payload that are in the value.
    pub(super) fn new(packed: &'r [u8], cap: usize) -> Self {
        Self { rest: packed, cap, handler: None, event_type: None, source: None }
    }

    /// The next delivery; the outer error ends it all.
    pub(super) fn next(&mut self) -> Result<Option<Result<Candidate, Broken>>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let numbers = self.numbers()?;
        let mut parts = [None; 9];
        let (headers, payload) = (length(numbers[13])?.unwrap_or(0), length(numbers[14])?.unwrap_or(0));
        let whole = headers.saturating_add(payload) <= self.cap;
        for (part, number) in parts.iter_mut().zip([0, 5, 6, 9, 10, 11, 12, 13, 14]) {
            if number < 13 || whole {
                *part = length(numbers[number])?.map(|bytes| self.take(bytes)).transpose()?;
            }
        }
        let delivery = self.delivery(&numbers, &parts, headers.saturating_add(payload));
        Ok(Some(delivery.map_err(|reason| Broken {
            handler: String::from_utf8_lossy(parts[0].unwrap_or_default()).into_owned(),
            due_at: numbers[1].unwrap_or(0),
            position: numbers[2].unwrap_or(0),
            claims: numbers[3].unwrap_or(0),
            key: parts[1].map(|key| String::from_utf8_lossy(key).into_owned()),
            reason,
        })))
    }

    fn numbers(&mut self) -> Result<[Option<i64>; NUMBERS], Malformed> {
        let end = self.rest.iter().position(|&byte| byte == b':').ok_or(Malformed)?;
        let mut numbers = [None; NUMBERS];
        let mut fields = self.rest[..end].split(|&byte| byte == b',');
        for number in &mut numbers {
            let field = fields.next().ok_or(Malformed)?;
            if !field.is_empty() {
                *number = Some(integer(field)?);
            }
        }
        self.rest = &self.rest[end + 1..];
        Ok(numbers)
    }

    fn take(&mut self, bytes: usize) -> Result<&'r [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn delivery(
        &mut self,
        numbers: &[Option<i64>; NUMBERS],
        parts: &[Option<&[u8]>; 9],
        bytes: usize,
    ) -> Result<Candidate, String> {
        let [handler, key, id, event_type, source, correlation, causation, headers, payload] = *parts;
        let number = |place: usize| numbers[place].ok_or("a number of it is missing");
        let stored_at = number(7)?;
        let id = id.and_then(decode_id).ok_or("its id is not one of this store")?;
        let handler = utf8(handler.unwrap_or_default())?;
        let handler = shared(&mut self.handler, handler, HandlerId::as_str, |text| HandlerId::stored(text.to_owned()));
        let event_type = utf8(event_type.unwrap_or_default())?;
        let event_type =
            shared(&mut self.event_type, event_type, EventType::as_str, |text| EventType::stored(text.to_owned()));
        let source = shared(&mut self.source, utf8(source.unwrap_or_default())?, |text| text, |text| Arc::from(text));
        let happened = Timestamp::from_micros(numbers[8].unwrap_or(stored_at));
        let mut envelope = Envelope::new(EventId::stored(id), event_type, source, (), happened);
        envelope.key = key.map(utf8).transpose()?.map(|key| OrderingKey::stored(key.to_owned()));
        if let Some(bytes) = correlation {
            envelope.correlation_id = decode_id(bytes).ok_or("its correlation id is not one of this store")?.into();
        }
        if let Some(bytes) = causation {
            let id = decode_id(bytes).ok_or("its causation id is not one of this store")?;
            envelope.causation_id = Some(id.into());
        }
        let body = match (headers, payload) {
            (Some(headers), Some(payload)) => {
                Some((Headers::stored(utf8(headers)?.to_owned()), RawPayload::stored(utf8(payload)?)))
            }
            _ => None,
        };
        Ok(Candidate {
            handler,
            due_at: Timestamp::from_micros(number(1)?),
            position: number(2)?,
            claims: number(3)?,
            key: envelope.key.clone(),
            stored_at: Timestamp::from_micros(stored_at),
            bytes,
            body,
            attempts: u32::try_from(number(4)?).unwrap_or(u32::MAX),
            envelope,
        })
    }
}

/// The value of the same text as the last one, or a new one.
fn shared<T: Clone>(last: &mut Option<T>, text: &str, of: impl Fn(&T) -> &str, new: impl Fn(&str) -> T) -> T {
    if let Some(known) = last
        && of(known) == text
    {
        return known.clone();
    }
    let value = new(text);
    *last = Some(value.clone());
    value
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| format!("a text of it is not UTF-8 ({error})"))
}

fn integer(field: &[u8]) -> Result<i64, Malformed> {
    std::str::from_utf8(field).ok().and_then(|text| text.parse().ok()).ok_or(Malformed)
}

fn length(number: Option<i64>) -> Result<Option<usize>, Malformed> {
    number.map(|number| usize::try_from(number).map_err(|_| Malformed)).transpose()
}

impl Candidate {
    /// The delivery as claimed by `session`; `body` when it was read apart.
    pub(super) fn claimed(self, session: i64, body: Option<(Headers, RawPayload)>) -> Claimed {
        let token = LeaseToken {
            lane: lane_of(self.key.as_ref().map_or(self.envelope.id.as_str(), |key| key.as_str())),
            epoch: session,
            claims: self.claims,
        };
        let (headers, payload) = self.body.or(body).unwrap_or_else(|| (Headers::default(), RawPayload::stored("")));
        let mut envelope = self.envelope.with_payload(payload);
        envelope.headers = headers;
        let event = Arc::new(envelope);
        let lease = Lease::new(event.id.clone(), self.handler, self.key, self.position, self.due_at, token);
        Claimed::new(lease, event, self.attempts, self.stored_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0193a3c4-1b2d-7c3e-8f40-123456789abc";

    fn packed(key: Option<&str>, payload: &[u8], seq: i64) -> Vec<u8> {
        let id = super::super::args::encode_id(ID);
        let key_bytes = key.map(|key| key.len().to_string()).unwrap_or_default();
        let mut bytes = format!("1,10,{seq},2,3,{key_bytes},{},7,,4,,,,2,{}:", id.len(), payload.len()).into_bytes();
        bytes.extend_from_slice(b"h");
        bytes.extend_from_slice(key.unwrap_or_default().as_bytes());
        bytes.extend_from_slice(&id);
        bytes.extend_from_slice(b"type{}");
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn deliveries_come_back_one_after_another() {
        let mut bytes = packed(Some("k:1,"), b"{\"a\":\"\0:,\"}", 5);
        bytes.extend(packed(None, b"\"\xff\"", 6));
        bytes.extend(packed(None, b"{}", 7));
        let mut unpacker = Unpacker::new(&bytes, 100);
        let first = unpacker.next().unwrap().unwrap().unwrap();
        assert_eq!((first.position, first.claims, first.due_at.as_micros()), (5, 2, 10));
        assert_eq!(first.body.as_ref().unwrap().1.as_str(), "{\"a\":\"\0:,\"}");
        let claimed = first.claimed(9, None);
        assert_eq!((claimed.event.id.as_str(), claimed.attempts), (ID, 3));
        assert_eq!(claimed.lease.key.as_ref().unwrap().as_str(), "k:1,");
        assert_eq!(claimed.event.occurred_at, claimed.stored_at);
        let broken = unpacker.next().unwrap().unwrap().unwrap_err();
        assert!(broken.position == 6 && broken.reason.contains("UTF-8"), "{broken:?}");
        assert_eq!(unpacker.next().unwrap().unwrap().unwrap().position, 7);
        assert!(unpacker.next().unwrap().is_none());
    }

    #[test]
    fn a_large_body_is_not_there_and_a_cut_value_is_noticed() {
        let whole = packed(None, b"\"0123456789\"", 5);
        let small = &whole[..whole.len() - 14];
        let mut unpacker = Unpacker::new(small, 10);
        let candidate = unpacker.next().unwrap().unwrap().unwrap();
        assert!(candidate.body.is_none() && candidate.bytes == 14);
        assert!(unpacker.next().unwrap().is_none());
        assert!(Unpacker::new(small, 100).next().is_err());
        assert!(Unpacker::new(b"1,2:", 100).next().is_err());
    }
}
