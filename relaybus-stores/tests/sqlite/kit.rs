//! What the tests of this store share: events, sessions, turns.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use relaybus::store::{
    AppendBatch, Appended, ClaimRequest, Claimed, Completed, HandlerSlots, NewEvent, Run, RunPart, SessionRequest,
    Turn, TurnRequest,
};
use relaybus::{
    Envelope, EventId, EventStore, EventType, HandlerId, Headers, OrderingKey, RawPayload, Result, Timestamp,
};
use relaybus_stores::SqliteStore;
use relaybus_stores::sqlite::SqliteSession;
use tempfile::TempDir;

/// The lease of the sessions of these tests.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Seconds after an arbitrary start.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + seconds * 1_000_000)
}

pub(crate) fn handler(name: &str) -> HandlerId {
    HandlerId::new(name).unwrap()
}

/// An id as the bus makes them: a UUID that rises.
pub(crate) fn fresh_id(number: u64) -> EventId {
    EventId::new(format!("01890000-0000-7000-8000-{number:012x}")).unwrap()
}

/// An event for handler `h`.
pub(crate) fn event(id: EventId, key: Option<&str>, payload: &str, now: Timestamp) -> NewEvent {
    let mut envelope =
        Envelope::new(id, EventType::new("test.happened").unwrap(), "tests", RawPayload::stored(payload), now);
    envelope.key = key.map(|key| OrderingKey::new(key).unwrap());
    NewEvent::new(envelope, Arc::from([handler("h")]), now)
}

/// `count` events with fresh ids from `from` on.
pub(crate) fn fresh(from: u64, count: u64, key: impl Fn(u64) -> Option<String>, now: Timestamp) -> AppendBatch {
    let payload = format!("\"{}\"", "x".repeat(158));
    let headers = Headers::new([("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]).unwrap();
    let events = (from..from + count).map(|number| {
        let mut new = event(fresh_id(number), key(number).as_deref(), &payload, now);
        new.envelope.headers = headers.clone();
        new.fresh_id = true;
        new
    });
    AppendBatch::new(events.collect(), now)
}

/// A store in a folder of its own, set up.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) store: SqliteStore,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("bus.db")).await;
        store.setup().await.unwrap();
        Self { folder, store }
    }

    /// Another store on the same file, with connections of its own.
    pub(crate) async fn peer(&self) -> SqliteStore {
        open(self.store.path()).await
    }

    pub(crate) async fn append(&self, batch: AppendBatch) -> Appended {
        self.store.append_alone(&batch).await.unwrap()
    }
}

pub(crate) async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path).await.unwrap()
}

/// A session and what it does with it.
pub(crate) struct Worker {
    pub(crate) store: SqliteStore,
    pub(crate) session: SqliteSession,
    slots: Vec<HandlerSlots>,
}

impl Worker {
    pub(crate) async fn new(store: &SqliteStore, now: Timestamp) -> Self {
        let request = SessionRequest::new("worker", vec![handler("h")], LEASE, now);
        let session = store.open_session(&request).await.unwrap();
        Self { store: store.clone(), session, slots: vec![HandlerSlots::new(handler("h"), 1_000)] }
    }

    pub(crate) async fn turn(&mut self, completed: &[Completed], limit: usize, now: Timestamp) -> Result<Turn> {
        let mut request = TurnRequest::new(now).completing(completed);
        if limit > 0 {
            request = request.claiming(ClaimRequest::new(&self.slots, limit, 20));
        }
        self.store.turn(&mut self.session, &request).await
    }

    pub(crate) async fn sweep(&mut self, limit: usize, now: Timestamp) -> Result<Turn> {
        let mut request = TurnRequest::new(now).claiming(ClaimRequest::new(&self.slots, limit, 20));
        request.sweep = true;
        self.store.turn(&mut self.session, &request).await
    }

    /// Claims and completes until nothing is due. The events in the order of their hand-out.
    pub(crate) async fn drain(&mut self, limit: usize, now: Timestamp) -> Vec<String> {
        let (mut done, mut seen) = (Vec::new(), Vec::new());
        loop {
            let turn = self.turn(&done, limit, now).await.unwrap();
            assert!(turn.completed.iter().all(|settled| *settled == relaybus::store::Settled::Applied));
            done = completions(&turn.runs, &mut seen);
            if done.is_empty() && !turn.more {
                return seen;
            }
        }
    }
}

/// Completes every run to its end in one go.
pub(crate) fn completions(runs: &[Run], seen: &mut Vec<String>) -> Vec<Completed> {
    let mut done = Vec::new();
    for run in runs {
        for (place, claimed) in run.deliveries.iter().enumerate() {
            seen.push(claimed.event.id.to_string());
            let part = if place + 1 == run.deliveries.len() { RunPart::Last } else { RunPart::Continues };
            done.push(Completed::new(claimed.lease.clone(), part));
        }
    }
    done
}

/// The deliveries of runs, in order.
pub(crate) fn claimed(runs: &[Run]) -> Vec<&Claimed> {
    runs.iter().flat_map(|run| &run.deliveries).collect()
}
