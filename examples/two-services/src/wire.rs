//! A wire between services of one process, in place of a broker: a message is confirmed when every subscriber stored it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use relaybus::{Envelope, Error, Inbox, RawPayload, Received, Result, Transport};

/// The wire. Each service holds an end of it.
#[derive(Clone, Debug, Default)]
pub struct Wire(Arc<Mutex<Subscriptions>>);

#[derive(Debug, Default)]
struct Subscriptions {
    ends: usize,
    all: Vec<Subscription>,
}

#[derive(Clone, Debug)]
struct Subscription {
    end: usize,
    destinations: Vec<String>,
    inbox: Inbox,
}

/// One service's end of the wire.
#[derive(Debug)]
pub struct End {
    number: usize,
    wire: Wire,
}

impl Wire {
    /// Another end.
    #[must_use]
    pub fn end(&self) -> End {
        let mut subscriptions = self.lock();
        subscriptions.ends += 1;
        End { number: subscriptions.ends, wire: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Subscriptions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inboxes(&self, destination: &str) -> Vec<Inbox> {
        let subscriptions = self.lock();
        let here = subscriptions.all.iter().filter(|one| one.destinations.iter().any(|name| name == destination));
        here.map(|subscription| subscription.inbox.clone()).collect()
    }

    async fn send(&self, destination: &str, event: &Envelope<RawPayload>) -> Result {
        let inboxes = self.inboxes(destination);
        if inboxes.is_empty() {
            // The bus tries again, until the other service is there.
            return Err(Error::Transport {
                message: format!("nobody listens on `{destination}`"),
                code: "RELAYBUS_ERROR",
                retryable: true,
                source: None,
            });
        }
        for inbox in inboxes {
            inbox.receive(event.clone(), Received { destination: destination.to_owned() }).await?;
        }
        Ok(())
    }
}

impl Transport for End {
    fn name(&self) -> &str {
        "wire"
    }

    fn publish<'a>(&'a self, destination: &'a str, event: &'a Envelope<RawPayload>) -> BoxFuture<'a, Result> {
        Box::pin(self.wire.send(destination, event))
    }

    fn subscribe<'a>(&'a self, destinations: &'a [String], inbox: Inbox) -> BoxFuture<'a, Result> {
        let subscription = Subscription { end: self.number, destinations: destinations.to_vec(), inbox };
        self.wire.lock().all.push(subscription);
        Box::pin(async { Ok(()) })
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'_, Result> {
        self.force_close();
        Box::pin(async { Ok(()) })
    }

    fn force_close(&self) {
        self.wire.lock().all.retain(|subscription| subscription.end != self.number);
    }
}
