//! Sessions, charging and tokens.

use super::*;
use crate::store::LeaseState;

#[test]
fn a_takeover_charges_what_may_have_started() {
    let store = MemoryStore::new();
    let keyed = |id, key| event(id, Some(key), &["h"], 0);
    publish(&store, vec![keyed("a", "k"), keyed("b", "k"), keyed("c", "l"), event("u", None, &["h"], 0)]);
    let (mut dead, mut heir) = (Worker::new(&store, 0), Worker::new(&store, 1000));
    let lost = dead.claim("h", 9, 9, 1);
    assert_eq!(shown(&lost), [vec!["a/0/0", "b/0/0"], vec!["c/0/0"], vec!["u/0/0"]]);
    assert_eq!(heir.sweep(99), 0, "not expired yet");
    assert_eq!(heir.sweep(100), 1);
    assert_eq!(shown(&heir.claim("h", 9, 9, 100)), [["a/1/1"], ["c/1/1"], ["u/1/1"]]);
    assert!(matches!(dead.turn(&TurnRequest::new(at(100))), Err(Error::SessionLost)));
    for claimed in lost.iter().flat_map(|run| &run.deliveries) {
        assert_eq!(dead.settle(claimed, buried(), &[], 100), Settled::Lost);
        assert_eq!(done(store.inspect(&claimed.lease)).unwrap(), LeaseState::Lost);
    }
    let statistics = done(store.statistics(at(100))).unwrap();
    assert_eq!((statistics.pending, statistics.processing, statistics.dead), (1, 3, 0));
}

#[test]
fn a_finished_head_of_a_run_is_not_charged() {
    let store = MemoryStore::new();
    publish(&store, ["a", "b", "c"].map(|id| event(id, Some("k"), &["h"], 0)).into());
    let (mut dead, mut heir) = (Worker::new(&store, 0), Worker::new(&store, 1000));
    let run = dead.claim("h", 1, 3, 1).remove(0).deliveries;
    dead.complete(&run[0], RunPart::Continues, 1);
    heir.sweep(100);
    let next = heir.claim("h", 1, 3, 100);
    assert_eq!(shown(&next), [["b/1/1"]]);
    heir.complete(&next[0].deliveries[0], RunPart::Last, 100);
    assert_eq!(shown(&heir.claim("h", 1, 3, 100)), [["c/1/0"]], "never started, never charged");
}

#[test]
fn an_expired_session_that_nobody_took_over_goes_on() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", None, &["h"], 0), event("b", None, &["h"], 0)]);
    let (mut late, mut other) = (Worker::new(&store, 0), Worker::new(&store, 0));
    let claimed = late.claim("h", 1, 1, 1);
    assert_eq!(late.complete(&claimed[0].deliveries[0], RunPart::Last, 5000), Settled::Applied);
    assert_eq!(late.claim("h", 1, 1, 5000).len(), 1);
    let mut renewal = TurnRequest::new(at(5000));
    renewal.renew = Some(at(6000));
    renewal.sweep = true;
    assert_eq!(late.turn(&renewal).unwrap().taken_over, 1, "the other one, never itself");
    renewal.renew = Some(at(5500));
    late.turn(&renewal).unwrap();
    assert!(matches!(other.turn(&renewal), Err(Error::SessionLost)));
    let mut third = Worker::new(&store, 5999);
    assert_eq!(third.sweep(5999), 0, "a late renewal does not move the expiry back");
    assert_eq!(third.sweep(6000), 1);
}

#[test]
fn closing_hands_back_without_a_charge_and_wakes() {
    let store = MemoryStore::new();
    publish(&store, ["a", "b"].map(|id| event(id, Some("k"), &["h"], 0)).into());
    let (mut leaving, mut staying) = (Worker::new(&store, 0), Worker::new(&store, 0));
    leaving.claim("h", 1, 2, 1);
    let woken = Arc::new(Mutex::new(0));
    let count = woken.clone();
    let guard = done(store.watch(Arc::new(move || *count.lock().unwrap() += 1))).unwrap();
    done(store.close_session(leaving.session, at(2))).unwrap();
    assert_eq!(*woken.lock().unwrap(), 1);
    drop(guard);
    let runs = staying.claim("h", 1, 2, 2);
    assert_eq!(shown(&runs), [["a/1/0"]]);
    staying.settle(&runs[0].deliveries[0], Verdict::Release, &[], 2);
    assert_eq!(*woken.lock().unwrap(), 1, "a dropped watch is silent");
}

#[test]
fn the_token_of_another_session_settles_nothing() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", None, &["h"], 0)]);
    let (mut one, mut two) = (Worker::new(&store, 0), Worker::new(&store, 0));
    let claimed = one.claim("h", 1, 1, 1).remove(0).deliveries.remove(0);
    assert_eq!(two.complete(&claimed, RunPart::Last, 1), Settled::Lost);
    assert_eq!(two.settle(&claimed, buried(), &[], 1), Settled::Lost);
    assert_eq!(done(store.inspect(&claimed.lease)).unwrap(), LeaseState::Held);
    assert_eq!(one.complete(&claimed, RunPart::Last, 1), Settled::Applied);
    assert_eq!(done(store.inspect(&claimed.lease)).unwrap(), LeaseState::Gone);
}

#[test]
fn attempts_saturate() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", None, &["h"], 0)]);
    let mut worker = Worker::new(&store, 0);
    store.shared.lock().events.get_mut(&1).unwrap().deliveries[0].attempts = u32::MAX;
    let claimed = worker.claim("h", 1, 1, 1).remove(0).deliveries.remove(0);
    worker.settle(&claimed, failed(1), &[], 1);
    assert_eq!(worker.claim("h", 1, 1, 1)[0].deliveries[0].attempts, u32::MAX);
}
