//! Transactions: all or nothing, in one step.

use super::*;
use crate::store::{AppendOutcome, CommitError, StoreTransaction};

fn begin(store: &MemoryStore) -> MemoryTransaction {
    done(store.begin(&TransactionOptions::default())).unwrap()
}

fn append(store: &MemoryStore, tx: &mut MemoryTransaction, event: NewEvent) -> AppendOutcome {
    done(store.append(tx, &AppendBatch::new(vec![event], at(0)))).unwrap().outcomes[0]
}

fn commit(store: &MemoryStore, tx: MemoryTransaction) -> std::result::Result<(), CommitError> {
    let answer = done(tx.commit());
    check(&store.shared.lock());
    answer
}

#[test]
fn nothing_is_seen_before_the_commit_and_positions_follow_commits() {
    let store = MemoryStore::new();
    let mut worker = Worker::new(&store, 0);
    let (mut early, mut late, mut gone) = (begin(&store), begin(&store), begin(&store));
    append(&store, &mut early, event("early", Some("k"), &["h"], 0));
    append(&store, &mut late, event("late", Some("k"), &["h"], 0));
    append(&store, &mut gone, event("gone", Some("k"), &["h"], 0));
    assert!(worker.claim("h", 9, 9, 0).is_empty());
    drop(gone);
    commit(&store, late).unwrap();
    commit(&store, early).unwrap();
    assert_eq!(shown(&worker.claim("h", 9, 9, 0)), [["late/0/0", "early/0/0"]]);
}

#[test]
fn answers_to_appends_count_what_is_stored_and_what_is_staged() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", None, &["g"], 0)]);
    let mut tx = begin(&store);
    assert_eq!(append(&store, &mut tx, event("a", None, &["g", "h", "h"], 0)), AppendOutcome::Known { added: 1 });
    assert_eq!(append(&store, &mut tx, event("a", None, &["g", "h", "i"], 0)), AppendOutcome::Known { added: 1 });
    assert_eq!(append(&store, &mut tx, event("b", None, &["g", "g"], 0)), AppendOutcome::Stored { deliveries: 1 });
    assert_eq!(append(&store, &mut tx, event("b", None, &["g"], 0)), AppendOutcome::Known { added: 0 });
    commit(&store, tx).unwrap();
    assert_eq!(done(store.statistics(at(0))).unwrap().pending, 4);
}

#[test]
fn of_two_transactions_with_one_id_the_second_adds_only_what_is_missing() {
    let store = MemoryStore::new();
    let (mut one, mut two) = (begin(&store), begin(&store));
    append(&store, &mut one, event("a", None, &["g"], 0));
    append(&store, &mut two, event("a", None, &["g", "h"], 0));
    commit(&store, one).unwrap();
    commit(&store, two).unwrap();
    let statistics = done(store.statistics(at(0))).unwrap();
    assert_eq!(statistics.pending, 2);
    assert_eq!(store.shared.lock().events.len(), 1);
}

#[test]
fn a_commit_whose_lease_was_lost_does_nothing() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", None, &["h"], 0)]);
    let (mut dead, mut heir) = (Worker::new(&store, 0), Worker::new(&store, 1000));
    let claimed = dead.claim("h", 1, 1, 1).remove(0).deliveries.remove(0);
    let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
    let effect = Arc::new(Mutex::new(0));
    let mut tx = begin(&store);
    let table = effect.clone();
    tx.on_commit(move || *table.lock().unwrap() += 1);
    append(&store, &mut tx, event("b", None, &["h"], 0));
    assert_eq!(done(store.complete_in(&mut tx, &completed, at(1))).unwrap(), Settled::Applied);
    assert_eq!(done(store.complete_in(&mut tx, &completed, at(1))).unwrap(), Settled::Gone, "in this transaction");
    heir.sweep(100);
    let mut late = begin(&store);
    assert_eq!(done(store.complete_in(&mut late, &completed, at(1))).unwrap(), Settled::Lost);
    assert!(matches!(commit(&store, tx), Err(CommitError::RolledBack(Error::LeaseLost))));
    assert_eq!(*effect.lock().unwrap(), 0);
    assert_eq!(shown(&heir.claim("h", 9, 1, 100)), [["a/1/1"]]);
}

#[test]
fn of_two_commits_of_one_completion_only_one_takes_effect() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", None, &["h"], 0)]);
    let mut worker = Worker::new(&store, 0);
    let claimed = worker.claim("h", 1, 1, 1).remove(0).deliveries.remove(0);
    let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
    let (mut one, mut two) = (begin(&store), begin(&store));
    for tx in [&mut one, &mut two] {
        assert_eq!(done(store.complete_in(tx, &completed, at(1))).unwrap(), Settled::Applied);
    }
    commit(&store, one).unwrap();
    assert!(matches!(commit(&store, two), Err(CommitError::RolledBack(Error::LeaseLost))));
    assert_eq!(done(store.complete_in(&mut begin(&store), &completed, at(1))).unwrap(), Settled::Gone);
}

#[test]
fn a_transaction_completes_a_whole_run_whatever_the_order() {
    let store = MemoryStore::new();
    publish(&store, ["a", "b", "c"].map(|id| event(id, Some("k"), &["h"], 0)).into());
    let mut worker = Worker::new(&store, 0);
    let run = worker.claim("h", 1, 3, 1).remove(0).deliveries;
    let mut tx = begin(&store);
    for claimed in &run[..2] {
        let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
        assert_eq!(done(store.complete_in(&mut tx, &completed, at(1))).unwrap(), Settled::Applied);
    }
    commit(&store, tx).unwrap();
    assert_eq!(shown(&worker.claim("h", 1, 3, 1)), [["c/1/0"]]);
}

#[test]
fn who_sees_a_delivery_sees_what_the_commit_did() {
    let store = MemoryStore::new();
    let rows = Arc::new(Mutex::new(Vec::new()));
    let count = 2_000;
    std::thread::scope(|scope| {
        let publisher = || {
            for number in 0..count {
                let mut tx = begin(&store);
                let id = number.to_string();
                append(&store, &mut tx, event(&id, None, &["h"], 0));
                let rows = rows.clone();
                tx.on_commit(move || rows.lock().unwrap().push(id));
                done(tx.commit()).unwrap();
            }
        };
        scope.spawn(publisher);
        let mut worker = Worker::new(&store, 0);
        let mut seen = 0;
        while seen < count {
            for run in worker.claim("h", 9, 1, 1) {
                assert_eq!(
                    rows.lock().unwrap().get(seen).map(String::as_str),
                    Some(run.deliveries[0].event.id.as_str())
                );
                seen += 1;
                worker.complete(&run.deliveries[0], RunPart::Last, 1);
            }
        }
    });
}

#[test]
fn the_closures_run_with_everything_applied_and_nobody_looking() {
    let store = MemoryStore::new();
    let mut tx = begin(&store);
    append(&store, &mut tx, event("a", None, &["h"], 0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    for number in [1, 2] {
        let (seen, shared) = (seen.clone(), store.shared.clone());
        tx.on_commit(move || seen.lock().unwrap().push((number, shared.state.try_lock().is_err())));
    }
    commit(&store, tx).unwrap();
    assert_eq!(*seen.lock().unwrap(), [(1, true), (2, true)]);
}

#[test]
fn a_panic_on_commit_leaves_the_store_whole() {
    let store = MemoryStore::new();
    let mut tx = begin(&store);
    append(&store, &mut tx, event("a", None, &["h"], 0));
    tx.on_commit(|| panic!("application bug"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| done(tx.commit()))).is_err());
    let mut worker = Worker::new(&store, 0);
    assert_eq!(worker.claim("h", 9, 1, 0).len(), 1);
}

#[test]
fn wakes_for_what_is_due_and_for_nothing_else() {
    let store = MemoryStore::new();
    let woken = Arc::new(Mutex::new(0));
    let count = woken.clone();
    let _guard = done(store.watch(Arc::new(move || *count.lock().unwrap() += 1))).unwrap();
    let mut last = 0;
    let mut wakes = || {
        let now = *woken.lock().unwrap();
        now - std::mem::replace(&mut last, now)
    };
    let mut worker = Worker::new(&store, 0);
    let mut tx = begin(&store);
    publish(&store, vec![event("later", None, &["h"], 5), event("nobody", None, &[], 0)]);
    assert_eq!(wakes(), 0);
    publish(&store, vec![event("now", None, &["h"], 0), event("now too", None, &["h"], 0)]);
    assert_eq!(wakes(), 1, "once a commit");
    publish(&store, vec![event("now", None, &["h"], 0)]);
    append(&store, &mut tx, event("staged", None, &["h"], 0));
    assert_eq!(wakes(), 0);
    commit(&store, tx).unwrap();
    assert_eq!(wakes(), 1);
    let claimed: Vec<_> = worker.claim("h", 9, 1, 0).into_iter().flat_map(|run| run.deliveries).collect();
    worker.settle(&claimed[0], Verdict::Release, &[], 0);
    assert_eq!(wakes(), 1);
    worker.settle(&claimed[0], Verdict::Release, &[], 0);
    worker.settle(&claimed[1], buried(), &[], 0);
    assert_eq!(wakes(), 0);
    let dead = [claimed[1].lease.delivery_id()];
    done(store.requeue(&dead, at(0))).unwrap();
    assert_eq!(wakes(), 1);
    done(store.requeue(&dead, at(0))).unwrap();
    assert_eq!(wakes(), 0);
}
