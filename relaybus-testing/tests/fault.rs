//! The faulty store: what reaches the store, what the caller hears, and that a seed repeats.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of real tasks and timers, with helpers of their own"
)]

use std::sync::Arc;
use std::time::Duration;

use relaybus::memory::MemoryStore;
use relaybus::store::{
    ClaimRequest, CommitError, Completed, DeliveryQuery, HandlerSlots, LeaseState, RunPart, Settled, StoreTransaction,
    TransactionOptions, TurnRequest,
};
use relaybus::{AnyStore, EventStore};
use relaybus_testing::fault::{Fault, FaultPlan, FaultyStore, Op};
use relaybus_testing::store_suite::kit::{Worker, append_in, at, batch, begin, event, handler, ids};
use relaybus_testing::{StoreFactory, store_contract};

/// A faulty store without faults is a store.
struct Faultless;

impl StoreFactory for Faultless {
    type Store = FaultyStore<MemoryStore>;

    async fn create(&self) -> Self::Store {
        FaultyStore::new(MemoryStore::new(), FaultPlan::new())
    }

    async fn peer(&self, _store: &Self::Store) -> Option<Self::Store> {
        None
    }
}

store_contract! {
    mod faultless;
    factory = Faultless;
}

fn store(plan: FaultPlan) -> FaultyStore<MemoryStore> {
    FaultyStore::new(MemoryStore::new(), plan)
}

async fn stored(store: &FaultyStore<MemoryStore>) -> usize {
    store.inner().list_deliveries(&DeliveryQuery::all(), at(0)).await.unwrap().deliveries.len()
}

#[tokio::test]
async fn a_call_fails_before_or_after_it_took_effect() {
    let plan = FaultPlan::new().on(Op::AppendAlone, 1, Fault::Fail).on(Op::AppendAlone, 3, Fault::LoseAnswer);
    let store = store(plan);
    let first = store.append_alone(&batch([event("e1")], at(0))).await.unwrap_err();
    assert!(first.is_retryable());
    assert_eq!(stored(&store).await, 0);
    store.append_alone(&batch([event("e2")], at(0))).await.unwrap();
    store.append_alone(&batch([event("e3")], at(0))).await.unwrap_err();
    assert_eq!((stored(&store).await, store.faults().calls(Op::AppendAlone)), (2, 3));
    let story: Vec<String> = store.faults().met().iter().map(ToString::to_string).collect();
    assert_eq!(story, ["append_alone 1: Fail", "append_alone 3: LoseAnswer"]);
}

#[tokio::test]
async fn a_commit_ends_in_three_ways_that_are_not_commits() {
    let store = store(FaultPlan::new());
    for (fault, committed) in [(Fault::Fail, 0), (Fault::LoseRequest, 0), (Fault::LoseAnswer, 1)] {
        let before = stored(&store).await;
        store.faults().next(Op::Commit, fault);
        let mut tx = begin(&store).await;
        append_in(&store, &mut tx, [event(&format!("{fault:?}"))], at(0)).await;
        let ended = tx.commit().await.unwrap_err();
        assert_eq!(matches!(ended, CommitError::InDoubt(_)), fault != Fault::Fail, "{ended:?}");
        assert_eq!(stored(&store).await - before, committed, "{fault:?}");
    }
}

#[tokio::test]
async fn what_a_lost_turn_claimed_comes_back_uncharged() {
    let store = Arc::new(store(FaultPlan::new()));
    store.append_alone(&batch([event("e1").key("k"), event("e2").key("k"), event("u")], at(0))).await.unwrap();
    let mut worker = Worker::open(&store, &["h"], at(0)).await;
    let slots = [HandlerSlots::new(handler("h"), 9)];
    store.faults().next(Op::Turn, Fault::LoseAnswer);
    let claim = TurnRequest::new(at(1)).claiming(ClaimRequest::new(&slots, 9, 9));
    worker.send(&claim).await.unwrap_err();
    let statistics = store.inner().statistics(at(1)).await.unwrap();
    assert_eq!(statistics.pending, 0, "the store did claim");
    let mut done = worker.drain(at(2)).await;
    done.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    assert_eq!(ids(&done), ["e1", "e2", "u"]);
    assert!(done.iter().all(|claimed| claimed.attempts == 0));
}

#[tokio::test]
async fn an_unheard_completion_has_happened() {
    let store = Arc::new(store(FaultPlan::new()));
    store.append_alone(&batch([event("e1")], at(0))).await.unwrap();
    let mut worker = Worker::open(&store, &["h"], at(0)).await;
    let claimed = worker.claim_event("e1", at(1)).await;
    store.faults().next(Op::Turn, Fault::LoseAnswer);
    let completed = [Completed::new(claimed.lease.clone(), RunPart::Last)];
    worker.send(&TurnRequest::new(at(1)).completing(&completed)).await.unwrap_err();
    assert_eq!(store.inspect(&claimed.lease).await.unwrap(), LeaseState::Gone);
    assert_eq!(worker.complete(&claimed, at(2)).await, Settled::Gone);
}

#[tokio::test(start_paused = true)]
async fn delays_are_virtual_and_hanging_calls_hang() {
    let second = Duration::from_secs(1);
    let plan = FaultPlan::new()
        .on(Op::Backlog, 1, Fault::Delay(second))
        .on(Op::Backlog, 2, Fault::DelayAnswer(second * 2))
        .on(Op::Backlog, 3, Fault::Hang);
    let store = store(plan);
    let started = tokio::time::Instant::now();
    store.backlog().await.unwrap();
    store.backlog().await.unwrap();
    assert_eq!(started.elapsed(), second * 3);
    assert!(tokio::time::timeout(second * 3600, store.backlog()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_given_up_is_lost() {
    let store = Arc::new(store(FaultPlan::new()));
    store.append_alone(&batch([event("e1")], at(0))).await.unwrap();
    let mut worker = Worker::open(&store, &["h"], at(0)).await;
    let slots = [HandlerSlots::new(handler("h"), 9)];
    store.faults().next(Op::Turn, Fault::DelayAnswer(Duration::from_secs(60)));
    let claim = TurnRequest::new(at(1)).claiming(ClaimRequest::new(&slots, 9, 9));
    assert!(tokio::time::timeout(Duration::from_secs(1), worker.send(&claim)).await.is_err());
    assert_eq!(ids(&worker.drain(at(2)).await), ["e1"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_ends_every_call_and_keeps_what_was_done() {
    let memory = Arc::new(MemoryStore::new());
    let store = FaultyStore::sharing(Arc::clone(&memory), FaultPlan::new());
    store.append_alone(&batch([event("e1")], at(0))).await.unwrap();
    store.faults().next(Op::Backlog, Fault::Delay(Duration::from_secs(60)));
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.backlog().await }
    });
    tokio::task::yield_now().await;
    store.faults().crash();
    let hour = Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, waiting).await.is_err(), "a call that waited");
    assert!(tokio::time::timeout(hour, store.backlog()).await.is_err(), "a call that comes");
    let restarted = FaultyStore::sharing(memory, FaultPlan::new());
    assert!(!restarted.faults().is_crashed());
    assert_eq!(stored(&restarted).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_seed_repeats_and_spares_what_it_should() {
    let story = |seed: u64| async move {
        let plan = FaultPlan::new()
            .seeded(seed)
            .fail(0.1)
            .lose_request(0.1)
            .lose_answer(0.1)
            .delay(0.3, Duration::from_millis(50))
            .sparing(&[Op::Inspect, Op::Statistics]);
        let store = store(plan);
        for _ in 0..100 {
            let _ = store.backlog().await;
            store.statistics(at(0)).await.expect("spared");
        }
        store.faults().met()
    };
    let (first, second, other) = (story(1).await, story(1).await, story(2).await);
    assert_eq!(first, second);
    assert_ne!(first, other);
    assert!((40..80).contains(&first.len()), "{} of 100 calls", first.len());
    for kind in ["Fail", "LoseRequest", "LoseAnswer", "Delay(", "DelayAnswer("] {
        assert!(first.iter().any(|met| met.to_string().contains(kind)), "no {kind} among {first:?}");
    }
}

#[tokio::test]
async fn it_can_be_erased_and_lends_what_the_inner_store_lends() {
    let store = store(FaultPlan::new());
    let erased = AnyStore::new(Arc::new(store.clone()));
    let mut tx = erased.begin(&TransactionOptions::default()).await.unwrap();
    for wanted in store.handles() {
        assert!(tx.lend(wanted.id()).is_some(), "{}", wanted.name());
    }
    erased.append(&mut tx, &batch([event("e1")], at(0))).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(stored(&store).await, 1);
}
