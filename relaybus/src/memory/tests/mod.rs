//! Tests of what the contract suite cannot see: the indexes, the commit, and random histories against a checker.

mod admin;
mod commit;
mod lease;
mod order;
mod random;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use smallvec::SmallVec;

use super::state::{Chain, Counts, Due, Place, State, Status};
use super::*;
use crate::envelope::{Envelope, RawPayload};
use crate::event::{EventId, EventType, OrderingKey};
use crate::handler_id::HandlerId;
use crate::store::{ClaimRequest, Claimed, HandlerSlots, NewEvent, Run, RunPart};

/// The answer of a store call: none of them ever waits.
fn done<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("the in-memory store never suspends")
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn handler(name: &'static str) -> HandlerId {
    HandlerId::from_static(name)
}

fn event(id: &str, key: Option<&str>, handlers: &[&'static str], due_at: i64) -> NewEvent {
    let id = EventId::new(id).unwrap();
    let mut envelope = Envelope::new(id, EventType::from_static("t"), "test", RawPayload::stored("{}"), at(0));
    envelope.key = key.map(|key| OrderingKey::new(key).unwrap());
    NewEvent::new(envelope, handlers.iter().map(|name| handler(name)).collect(), at(due_at))
}

/// A store with a session, driven by one worker.
struct Worker {
    store: MemoryStore,
    session: MemorySession,
}

const LEASE: Duration = Duration::from_micros(100);

impl Worker {
    fn new(store: &MemoryStore, now: i64) -> Self {
        let request = SessionRequest::new("test", Vec::new(), LEASE, at(now));
        Self { store: store.clone(), session: done(store.open_session(&request)).unwrap() }
    }

    fn turn(&mut self, request: &TurnRequest<'_>) -> Result<Turn> {
        let turn = done(self.store.turn(&mut self.session, request));
        check(&self.store.shared.lock());
        turn
    }

    fn claim(&mut self, name: &'static str, limit: usize, run_length: usize, now: i64) -> Vec<Run> {
        let slots = [HandlerSlots::new(handler(name), limit)];
        self.turn(&TurnRequest::new(at(now)).claiming(ClaimRequest::new(&slots, limit, run_length))).unwrap().runs
    }

    fn complete(&mut self, claimed: &Claimed, part: RunPart, now: i64) -> Settled {
        let completed = [Completed::new(claimed.lease.clone(), part)];
        self.turn(&TurnRequest::new(at(now)).completing(&completed)).unwrap().completed[0]
    }

    fn settle(&mut self, claimed: &Claimed, verdict: Verdict, rest: &[Claimed], now: i64) -> Settled {
        let mut settlement = Settlement::new(claimed.lease.clone(), verdict);
        settlement.rest = rest.iter().map(|claimed| claimed.lease.clone()).collect();
        let settled = done(self.store.settle(&mut self.session, &[settlement], at(now))).unwrap();
        check(&self.store.shared.lock());
        settled[0]
    }

    fn sweep(&mut self, now: i64) -> usize {
        let mut request = TurnRequest::new(at(now));
        request.sweep = true;
        self.turn(&request).unwrap().taken_over
    }
}

fn publish(store: &MemoryStore, events: Vec<NewEvent>) -> Appended {
    let appended = done(store.append_alone(&AppendBatch::new(events, at(0)))).unwrap();
    check(&store.shared.lock());
    appended
}

/// What runs hold, as `id/claims/attempts`.
fn shown(runs: &[Run]) -> Vec<Vec<String>> {
    let one = |claimed: &Claimed| format!("{}/{}/{}", claimed.event.id, claimed.lease.token.claims, claimed.attempts);
    runs.iter().map(|run| run.deliveries.iter().map(one).collect()).collect()
}

fn failed(due_at: i64) -> Verdict {
    Verdict::Reschedule { due_at: at(due_at), error: "{}".to_owned() }
}

fn buried() -> Verdict {
    Verdict::Bury { error: "{}".to_owned(), charge: true }
}

/// The pending deliveries of a key, and the ones a session holds.
type KeyParts = (BTreeMap<i64, Timestamp>, SmallVec<[i64; 4]>);

/// One handler's indexes, as the events say they must be.
#[derive(Default)]
struct Derived {
    counts: Counts,
    due: BTreeSet<Due>,
    keys: HashMap<OrderingKey, KeyParts>,
}

/// Builds every index from the statuses in the events, and compares.
fn check(state: &State) {
    let mut queues: Vec<Derived> = state.queues.iter().map(|_| Derived::default()).collect();
    let mut held: BTreeMap<i64, HashSet<Place>> = state.sessions.keys().map(|&id| (id, HashSet::new())).collect();
    for (&position, row) in &state.events {
        assert_eq!(state.ids.get(&row.event.id), Some(&position));
        for delivery in &row.deliveries {
            assert!(row.handlers.contains(&delivery.queue), "an event remembers its handlers");
            let derived = &mut queues[delivery.queue];
            let key = row.event.key.clone();
            let chain = key.filter(|_| is_unfinished(delivery.status)).map(|key| derived.keys.entry(key).or_default());
            match delivery.status {
                Status::Pending => {
                    derived.counts.pending += 1;
                    match chain {
                        Some(chain) => drop(chain.0.insert(position, delivery.due_at)),
                        None => drop(derived.due.insert((delivery.due_at, position))),
                    }
                }
                Status::Processing { session } => {
                    derived.counts.processing += 1;
                    if let Some(chain) = chain {
                        chain.1.push(position);
                    }
                    let held = held.get_mut(&session).expect("a delivery is held by a session that exists");
                    held.insert(Place { queue: delivery.queue, position });
                }
                Status::Completed { .. } => derived.counts.completed += 1,
                Status::Dead { .. } => derived.counts.dead += 1,
            }
        }
    }
    assert_eq!(state.ids.len(), state.events.len());
    for (queue, derived) in state.queues.iter().zip(queues) {
        check_queue(queue, derived);
    }
    assert_eq!(held, state.sessions.iter().map(|(&id, row)| (id, row.held.clone())).collect());
}

fn is_unfinished(status: Status) -> bool {
    matches!(status, Status::Pending | Status::Processing { .. })
}

fn check_queue(queue: &state::Queue, mut derived: Derived) {
    for (pending, run) in derived.keys.values().filter(|(_, run)| run.is_empty()) {
        assert!(run.is_empty());
        derived.due.extend(pending.first_key_value().map(|(&position, &due_at)| (due_at, position)));
    }
    let shown = |chain: &Chain| (chain.pending.clone(), chain.run.clone());
    assert_eq!(queue.counts, derived.counts);
    assert_eq!(queue.due, derived.due);
    assert_eq!(
        queue.keys.iter().map(|(key, chain)| (key.clone(), shown(chain))).collect::<HashMap<_, _>>(),
        derived.keys
    );
}

#[test]
fn refuses_production_only_there_and_only_by_default() {
    // The environment of a running test must not change, so the test runs itself again.
    let refused = |store: MemoryStore| done(store.setup()).is_err() && done(store.verify()).is_err();
    match std::env::var(CHILD) {
        Ok(_) => {
            assert!(refused(MemoryStore::new()));
            assert!(!refused(MemoryStore::new().allow_in_production()));
        }
        Err(_) => {
            assert!(!refused(MemoryStore::new()));
            let test = "memory::tests::refuses_production_only_there_and_only_by_default";
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", test])
                .env(CHILD, "1")
                .env(ENVIRONMENT_VARIABLE, PRODUCTION)
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert!(status.success());
        }
    }
}

const CHILD: &str = "RELAYBUS_TEST_CHILD";

#[test]
fn handles_of_another_store_are_refused() {
    let (store, other) = (MemoryStore::new(), MemoryStore::new());
    let mut worker = Worker::new(&other, 0);
    let mut tx = done(other.begin(&TransactionOptions::default())).unwrap();
    let batch = AppendBatch::new(vec![event("a", None, &["h"], 0)], at(0));
    let refused = [
        done(store.append(&mut tx, &batch)).map_err(|error| error.code()).err(),
        done(store.turn(&mut worker.session, &TurnRequest::new(at(0)))).map_err(|error| error.code()).err(),
        done(store.settle(&mut worker.session, &[], at(0))).map_err(|error| error.code()).err(),
        done(store.close_session(worker.session, at(0))).map_err(|error| error.code()).err(),
    ];
    assert_eq!(refused, [Some("RELAYBUS_CONFIGURATION"); 4]);
}
