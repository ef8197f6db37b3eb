//! Transactions: what is stored in one exists with it, and a handler's transaction completes its delivery.
//!
//! A case never takes a turn while a transaction is open, unless the store has concurrent writers: where it has not, the
//! turn would wait for the transaction.

use std::sync::Arc;
use std::time::Duration;

use relaybus::EventStore;
use relaybus::store::{
    AppendOutcome, CommitError, Completed, DeliveryQuery, IsolationLevel, LeaseState, RunPart, Settled,
    StoreTransaction, TransactionOptions, Verdict,
};

use super::StoreFactory;
use super::kit::{Rig, Worker, after_the_lease, append_in, at, begin, buried, event, handler, ids, sorted_ids};

/// What a committed transaction stored is there, all of it.
pub async fn a_committed_append_is_delivered<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut tx = begin(&**rig.store()).await;
    let outcomes = append_in(&**rig.store(), &mut tx, [event("e1"), event("e2").key("k").to(&["h", "i"])], at(0)).await;
    assert_eq!(outcomes, [AppendOutcome::Stored { deliveries: 1 }, AppendOutcome::Stored { deliveries: 2 }]);
    assert_eq!(append_in(&**rig.store(), &mut tx, [event("e3").key("k")], at(0)).await.len(), 1);
    tx.commit().await.expect("commit");
    let mut worker = rig.worker(&["h", "i"], at(1)).await;
    assert_eq!(sorted_ids(&worker.drain(at(1)).await), ["e1", "e2", "e2", "e3"]);
    rig.close().await;
}

/// What a rolled back transaction stored never was; its ids are free again.
pub async fn a_rolled_back_append_leaves_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut tx = begin(&**rig.store()).await;
    append_in(&**rig.store(), &mut tx, [event("e1"), event("e2").key("k")], at(0)).await;
    tx.rollback().await.expect("rollback");
    assert!(rig.deliveries(DeliveryQuery::all(), at(0)).await.is_empty());
    rig.worker(&["h"], at(1)).await.expect_nothing(at(1)).await;
    assert_eq!(rig.append([event("e1")], at(2)).await, [AppendOutcome::Stored { deliveries: 1 }]);
    rig.close().await;
}

/// A transaction that is dropped is rolled back, and holds up nobody.
pub async fn a_dropped_transaction_leaves_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    for _ in 0..10 {
        let mut tx = begin(&**rig.store()).await;
        append_in(&**rig.store(), &mut tx, [event("e1"), event("e2").key("k")], at(0)).await;
        drop(tx);
    }
    drop(begin(&**rig.store()).await);
    rig.append([event("e3").key("k")], at(1)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    assert_eq!(ids(&worker.drain(at(1)).await), ["e3"]);
    rig.close().await;
}

/// What is not committed is seen by nobody.
pub async fn an_uncommitted_append_is_invisible<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    let other = rig.another().await;
    let mut worker = Worker::open(&other, &["h"], at(0)).await;
    worker.expect_nothing(at(0)).await;
    let mut tx = begin(&**rig.store()).await;
    append_in(&**rig.store(), &mut tx, [event("e1"), event("e2").key("k")], at(0)).await;
    assert!(rig.deliveries(DeliveryQuery::all(), at(1)).await.is_empty());
    assert_eq!(rig.statistics(at(1)).await.pending, 0);
    assert!(other.list_deliveries(&DeliveryQuery::all(), at(1)).await.unwrap().deliveries.is_empty());
    assert!(other.backlog().await.unwrap().is_empty());
    if rig.store().capabilities().concurrent_writers {
        worker.expect_nothing(at(1)).await;
    }
    tx.commit().await.expect("commit");
    assert_eq!(sorted_ids(&worker.drain(at(2)).await), ["e1", "e2"]);
    rig.close().await;
}

/// An event that commits late is found, though younger ones were handled before it.
pub async fn a_late_commit_is_found<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let store = Arc::clone(rig.store());
    let mut worker = rig.worker(&["h"], at(0)).await;
    worker.expect_nothing(at(0)).await;
    let mut tx = begin(&*store).await;
    append_in(&*store, &mut tx, [event("slow"), event("slow-keyed").key("s")], at(0)).await;
    let young = tokio::spawn({
        let store = Arc::clone(&store);
        async move { super::kit::append(&*store, [event("young"), event("young-keyed").key("y")], at(5)).await }
    });
    if store.capabilities().concurrent_writers {
        young.await.expect("an append beside an open transaction");
        assert_eq!(sorted_ids(&worker.drain(at(6)).await), ["young", "young-keyed"]);
        tx.commit().await.expect("commit");
        assert_eq!(sorted_ids(&worker.drain(at(400)).await), ["slow", "slow-keyed"]);
    } else {
        // The weaker behaviour: the second writer waits for the first, and nothing is lost by it.
        tx.commit().await.expect("commit");
        young.await.expect("an append that waited");
        let done = worker.drain(at(400)).await;
        assert_eq!(sorted_ids(&done), ["slow", "slow-keyed", "young", "young-keyed"]);
    }
    rig.close().await;
}

/// Two transactions that store events of one key are handled in the order in which they committed.
pub async fn the_order_of_a_key_is_that_of_commits<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    for round in 0..10_i64 {
        let key = format!("k{round}");
        let (first, second) = (format!("a{round}"), format!("b{round}"));
        let store = Arc::clone(rig.store());
        let mut tx = begin(&*store).await;
        append_in(&*store, &mut tx, [event(&first).key(&key)], at(round)).await;
        let mut rival = tokio::spawn({
            let (store, key, second) = (Arc::clone(&store), key.clone(), second.clone());
            async move {
                let mut tx = begin(&*store).await;
                append_in(&*store, &mut tx, [event(&second).key(&key)], at(round)).await;
                tx.commit().await.expect("commit");
            }
        });
        // A store either lets the second transaction pass or makes it wait for the first.
        let passed = tokio::time::timeout(Duration::from_millis(100), &mut rival).await.is_ok();
        tx.commit().await.expect("commit");
        if !passed {
            rival.await.expect("the second transaction");
        }
        let order = if passed { [second, first] } else { [first, second] };
        let mut worker = rig.worker(&["h"], at(20)).await;
        assert_eq!(ids(&worker.drain(at(20)).await), order);
        worker.close(at(20)).await;
    }
    rig.close().await;
}

/// An id that is stored twice in one transaction is known the second time.
pub async fn a_transaction_knows_its_own_ids<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut tx = begin(&**rig.store()).await;
    append_in(&**rig.store(), &mut tx, [event("e1")], at(0)).await;
    let again = append_in(&**rig.store(), &mut tx, [event("e1").to(&["h", "i"])], at(0)).await;
    assert_eq!(again, [AppendOutcome::Known { added: 1 }]);
    tx.commit().await.expect("commit");
    let mut worker = rig.worker(&["h", "i"], at(1)).await;
    assert_eq!(ids(&worker.drain(at(1)).await), ["e1", "e1"]);
    rig.close().await;
}

/// A delivery that its handler's transaction completes is gone with the commit.
pub async fn complete_in_takes_effect_with_the_commit<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k"), event("e3").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for claimed in worker.claim_all(2, at(1)).await {
        let mut tx = begin(&**rig.store()).await;
        append_in(&**rig.store(), &mut tx, [event(&format!("of-{}", claimed.event.id)).to(&["x"])], at(2)).await;
        let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
        assert_eq!(rig.store().complete_in(&mut tx, &completed, at(2)).await.unwrap(), Settled::Applied);
        tx.commit().await.expect("commit");
        assert_eq!(rig.store().inspect(&claimed.lease).await.unwrap(), LeaseState::Gone);
        worker.finish(&claimed.lease);
        assert_eq!(worker.complete(&claimed, at(3)).await, Settled::Gone);
    }
    assert_eq!(ids(&worker.drain(at(3)).await), ["e3"]);
    let mut effects = rig.worker(&["x"], at(4)).await;
    assert_eq!(sorted_ids(&effects.drain(at(4)).await), ["of-e1", "of-e2"]);
    rig.close().await;
}

/// A delivery whose handler's transaction rolls back is held as before, and may complete later.
pub async fn a_rolled_back_complete_in_changes_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k"), event("e3").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_all(2, at(1)).await;
    for (n, claimed) in claimed.iter().enumerate() {
        let mut tx = begin(&**rig.store()).await;
        let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
        assert_eq!(rig.store().complete_in(&mut tx, &completed, at(2)).await.unwrap(), Settled::Applied);
        if n == 0 {
            tx.rollback().await.expect("rollback");
        } else {
            drop(tx);
        }
    }
    worker.expect_nothing(at(3)).await;
    for claimed in &claimed {
        assert_eq!(rig.store().inspect(&claimed.lease).await.unwrap(), LeaseState::Held);
        assert_eq!(worker.complete(claimed, at(4)).await, Settled::Applied);
    }
    assert_eq!(ids(&worker.drain(at(5)).await), ["e3"]);
    rig.close().await;
}

/// A handler's transaction that lost its lease is told so, and changes nothing.
pub async fn complete_in_is_fenced<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("taken"), event("released"), event("done")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut claimed = worker.claim_all(3, at(1)).await;
    claimed.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    assert_eq!(worker.complete(&claimed[0], at(2)).await, Settled::Applied);
    assert_eq!(worker.settle(&claimed[1].lease, Verdict::Release, at(2)).await, Settled::Applied);
    worker.crash();
    let now = after_the_lease();
    let mut heir = rig.worker(&["h"], now).await;
    let new = heir.claim_all(2, now).await;
    for (stale, answer) in claimed.iter().zip([Settled::Gone, Settled::Lost, Settled::Lost]) {
        let mut tx = begin(&**rig.store()).await;
        let completed = Completed::new(stale.lease.clone(), RunPart::Last);
        assert_eq!(rig.store().complete_in(&mut tx, &completed, now).await.unwrap(), answer, "{}", stale.event.id);
        tx.rollback().await.expect("rollback");
    }
    for fresh in &new {
        assert_eq!(heir.complete(fresh, now).await, Settled::Applied);
    }
    rig.close().await;
}

/// A completed delivery cannot be completed again in a transaction, and one transaction completes it once.
pub async fn complete_in_applies_once<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_event("e1", at(1)).await;
    let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
    for answer in [Settled::Applied, Settled::Gone] {
        let mut tx = begin(&**rig.store()).await;
        assert_eq!(rig.store().complete_in(&mut tx, &completed, at(2)).await.unwrap(), answer);
        tx.commit().await.expect("commit");
    }
    rig.close().await;
}

/// Elements of a run may be completed by transactions, one after another.
pub async fn a_run_is_completed_by_transactions<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=4).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    for (n, claimed) in run.iter().enumerate() {
        let part = if n == 2 { RunPart::Last } else { RunPart::Continues };
        let mut tx = begin(&**rig.store()).await;
        let completed = Completed::new(claimed.lease.clone(), part);
        assert_eq!(rig.store().complete_in(&mut tx, &completed, at(2)).await.unwrap(), Settled::Applied);
        tx.commit().await.expect("commit");
        worker.finish(&claimed.lease);
        if n < 2 {
            worker.expect_nothing(at(2)).await;
        }
    }
    assert_eq!(ids(&worker.drain(at(3)).await), ["e4"]);
    rig.close().await;
}

/// A worker that dies after its transaction completed an element of a run is charged for the next one only.
pub async fn a_takeover_after_complete_in_charges_the_next_element<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=3).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let mut dead = rig.worker(&["h"], at(1)).await;
    let run = dead.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    let mut tx = begin(&**rig.store()).await;
    let completed = Completed::new(run[0].lease.clone(), RunPart::Continues);
    assert_eq!(rig.store().complete_in(&mut tx, &completed, at(2)).await.unwrap(), Settled::Applied);
    tx.commit().await.expect("commit");
    dead.crash();
    let now = after_the_lease();
    let mut heir = rig.worker(&["h"], now).await;
    let done = heir.drain(now).await;
    assert_eq!(ids(&done), ["e2", "e3"]);
    let attempts: Vec<u32> = done.iter().map(|claimed| claimed.attempts).collect();
    assert_eq!(attempts, [1, 0]);
    rig.close().await;
}

/// A takeover and a handler's transaction never both succeed.
pub async fn a_takeover_and_a_commit_exclude_each_other<F: StoreFactory>(f: &F) {
    for round in 0..5 {
        let rig = Rig::open(f).await;
        let store = Arc::clone(rig.store());
        rig.append([event("e1").key("k")], at(0)).await;
        let mut stalled = rig.worker(&["h"], at(1)).await;
        let claimed = stalled.claim_event("e1", at(1)).await;
        let now = after_the_lease();
        let mut tx = begin(&*store).await;
        append_in(&*store, &mut tx, [event("effect").to(&["x"])], now).await;
        let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
        assert_eq!(store.complete_in(&mut tx, &completed, now).await.unwrap(), Settled::Applied);
        let heir = tokio::spawn({
            let store = Arc::clone(&store);
            async move {
                let mut heir = Worker::open(&store, &["h"], now).await;
                let got = heir.claim(1, now).await;
                (heir, got)
            }
        });
        tokio::time::sleep(Duration::from_millis(5 * round)).await;
        let committed = tx.commit().await;
        let (mut heir, mut got) = heir.await.expect("the heir");
        if got.is_empty() {
            got = heir.claim(1, now).await;
        }
        let effects = rig.deliveries(DeliveryQuery::all().handler(handler("x")), now).await.len();
        match committed {
            Ok(()) => assert_eq!((effects, ids(&got)), (1, vec![]), "the commit won"),
            Err(CommitError::RolledBack(_)) => assert_eq!((effects, ids(&got)), (0, vec!["e1"]), "the heir won"),
            Err(CommitError::InDoubt(error)) => panic!("nothing was lost on the way: {error}"),
        }
        rig.close().await;
    }
}

/// `inspect` tells what became of a lease: held, gone or lost.
pub async fn inspect_tells_what_became_of_a_lease<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let names = ["again", "dead", "done", "held", "released"];
    rig.append(names.map(event), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut claimed = worker.claim_all(5, at(1)).await;
    claimed.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    for claimed in &claimed {
        assert_eq!(rig.store().inspect(&claimed.lease).await.unwrap(), LeaseState::Held);
    }
    worker.settle(&claimed[0].lease, super::kit::again(at(50)), at(2)).await;
    worker.settle(&claimed[1].lease, buried(), at(2)).await;
    worker.complete(&claimed[2], at(2)).await;
    worker.settle(&claimed[4].lease, Verdict::Release, at(2)).await;
    let mut states = Vec::new();
    for claimed in &claimed {
        states.push(rig.store().inspect(&claimed.lease).await.unwrap());
    }
    assert_ne!(states.remove(1), LeaseState::Held, "a dead delivery is not held");
    assert_eq!(states, [LeaseState::Lost, LeaseState::Gone, LeaseState::Held, LeaseState::Lost]);
    rig.close().await;
}

/// A store with isolation levels opens a transaction at each; one without says so instead of ignoring the wish.
pub async fn isolation_levels_are_kept_or_refused<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    for level in [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let mut options = TransactionOptions::default();
        options.isolation = Some(level);
        match rig.store().begin(&options).await {
            Ok(mut tx) => {
                assert!(rig.store().capabilities().isolation_levels, "`{}` was ignored", level.as_str());
                append_in(&**rig.store(), &mut tx, [event(level.as_str()).key("k")], at(0)).await;
                tx.commit().await.expect("commit");
            }
            Err(error) => {
                assert!(!rig.store().capabilities().isolation_levels, "`{}` is refused: {error}", level.as_str());
                assert_eq!(error.code(), "RELAYBUS_CONFIGURATION", "{error}");
            }
        }
    }
    rig.append([event("after").key("k")], at(1)).await;
    let mut worker = rig.worker(&["h"], at(2)).await;
    let expected = if rig.store().capabilities().isolation_levels { 4 } else { 1 };
    assert_eq!(worker.drain(at(2)).await.len(), expected);
    rig.close().await;
}

/// A transaction that the store opens lends itself by its type, and nothing of an unknown type.
pub async fn a_transaction_lends_what_it_has<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut tx = begin(&**rig.store()).await;
    for wanted in rig.store().handles() {
        assert!(tx.lend(wanted.id()).is_some(), "`{}` is named but not lent", wanted.name());
    }
    assert!(tx.lend(std::any::TypeId::of::<F>()).is_none());
    tx.rollback().await.expect("rollback");
    rig.close().await;
}
