//! The inbox: what a transport hands received messages to.
//!
//! An event is stored once by its id, with a delivery for each local handler; the transport acknowledges after that.
//! A message that arrives again finds its id and stores nothing, however often the broker repeats it.

use std::sync::Arc;

use crate::bus::Engine;
use crate::envelope::{Envelope, RawPayload};
use crate::error::Result;

/// Where received events go. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Inbox {
    engine: Arc<Engine>,
    transport: Arc<str>,
}

/// What became of a received event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// It was stored, with a delivery for each local handler.
    Accepted,
    /// It was there before.
    Duplicate,
    /// No local handler wants it; nothing was stored.
    Ignored,
}

/// What a transport tells about a message it received.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// The topic or queue it came from.
    pub destination: String,
}

impl Inbox {
    pub(crate) fn new(engine: Arc<Engine>, transport: &str) -> Self {
        Self { engine, transport: transport.into() }
    }

    /// Stores a received event once by its id. The transport acknowledges when this has resolved.
    ///
    /// # Errors
    /// `RELAYBUS_INVALID_ENVELOPE` when the event can never be stored: the transport moves the message to its dead
    /// letters. Any other error is of the moment: the transport asks for the message again.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the event stored; receiving it again is a duplicate.
    pub async fn receive(&self, event: Envelope<RawPayload>, from: Received) -> Result<ReceiveOutcome> {
        self.engine.receive(event, Some((&self.transport, &from.destination))).await
    }

    /// Reports a message that could not even be decoded, so that observers count it.
    pub fn invalid(&self, from: &Received, reason: &str) {
        self.engine.observers.invalid_message(&self.transport, &from.destination, reason);
    }
}
