//! A broker in memory: it keeps what it was sent, refuses what it is told to, and hands in what a test receives.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use relaybus::{Envelope, Error, Inbox, Result, Transport};

use super::Seen;

/// A transport and what happened to it. Clones share it.
#[derive(Clone)]
pub(crate) struct Broker(Arc<Inner>);

struct Inner {
    name: &'static str,
    /// `destination type key` of each attempt to send, and of each that was confirmed.
    attempts: Seen,
    sent: Seen<(String, Envelope)>,
    answers: Mutex<VecDeque<Answer>>,
    inboxes: Mutex<Vec<(Vec<String>, Inbox)>>,
    refused_subscriptions: AtomicUsize,
    ready: AtomicBool,
    hangs_on_close: AtomicBool,
    closed: AtomicUsize,
    forced: AtomicUsize,
}

enum Answer {
    Refuse(Error),
    Hang,
    Panic,
}

impl Broker {
    pub(crate) fn new(name: &'static str) -> Self {
        Self(Arc::new(Inner {
            name,
            attempts: Seen::default(),
            sent: Seen::default(),
            answers: Mutex::default(),
            inboxes: Mutex::default(),
            refused_subscriptions: AtomicUsize::new(0),
            ready: AtomicBool::new(true),
            hangs_on_close: AtomicBool::new(false),
            closed: AtomicUsize::new(0),
            forced: AtomicUsize::new(0),
        }))
    }

    pub(crate) fn shared(&self) -> Arc<dyn Transport> {
        Arc::new(self.clone())
    }

    pub(crate) fn attempts(&self) -> &Seen {
        &self.0.attempts
    }

    pub(crate) fn sent(&self) -> &Seen<(String, Envelope)> {
        &self.0.sent
    }

    /// The next send fails so.
    pub(crate) fn refuse(&self, error: Error) {
        self.0.answers.lock().unwrap().push_back(Answer::Refuse(error));
    }

    /// The next send never answers.
    pub(crate) fn hang(&self) {
        self.0.answers.lock().unwrap().push_back(Answer::Hang);
    }

    /// The next send panics.
    pub(crate) fn panic(&self) {
        self.0.answers.lock().unwrap().push_back(Answer::Panic);
    }

    pub(crate) fn refuse_subscriptions(&self, count: usize) {
        self.0.refused_subscriptions.store(count, Ordering::SeqCst);
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.0.ready.store(ready, Ordering::SeqCst);
    }

    pub(crate) fn hang_on_close(&self) {
        self.0.hangs_on_close.store(true, Ordering::SeqCst);
    }

    pub(crate) fn closed(&self) -> (usize, usize) {
        (self.0.closed.load(Ordering::SeqCst), self.0.forced.load(Ordering::SeqCst))
    }

    /// The destinations of each subscription.
    pub(crate) fn subscriptions(&self) -> Vec<Vec<String>> {
        self.0.inboxes.lock().unwrap().iter().map(|(destinations, _)| destinations.clone()).collect()
    }

    pub(crate) fn inbox(&self) -> Inbox {
        self.0.inboxes.lock().unwrap().first().expect("nobody subscribed").1.clone()
    }
}

impl Transport for Broker {
    fn name(&self) -> &str {
        self.0.name
    }

    fn system(&self) -> &'static str {
        "broker-system"
    }

    fn publish<'a>(&'a self, destination: &'a str, event: &'a Envelope) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let key = event.key.as_ref().map_or("-", |key| key.as_str());
            self.0.attempts.push(format!("{destination} {} {key}", event.event_type));
            let answer = self.0.answers.lock().unwrap().pop_front();
            match answer {
                Some(Answer::Refuse(error)) => return Err(error),
                Some(Answer::Hang) => std::future::pending().await,
                Some(Answer::Panic) => panic!("the client panicked"),
                None => {}
            }
            self.0.sent.push((destination.to_owned(), event.clone()));
            Ok(())
        })
    }

    fn subscribe<'a>(&'a self, destinations: &'a [String], inbox: Inbox) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let left = self.0.refused_subscriptions.load(Ordering::SeqCst);
            if left > 0 {
                self.0.refused_subscriptions.store(left - 1, Ordering::SeqCst);
                return Err(Error::lifecycle("the broker is not there yet"));
            }
            self.0.inboxes.lock().unwrap().push((destinations.to_vec(), inbox));
            Ok(())
        })
    }

    fn is_ready(&self) -> bool {
        self.0.ready.load(Ordering::SeqCst)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            if self.0.hangs_on_close.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            self.0.closed.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    }

    fn force_close(&self) {
        self.0.forced.fetch_add(1, Ordering::SeqCst);
    }
}
