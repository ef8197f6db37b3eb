//! Runs, heads and followers of a key.

use super::*;

fn chain(store: &MemoryStore, ids: &[&str]) {
    publish(store, ids.iter().map(|id| event(id, Some("k"), &["h"], 0)).collect());
}

#[test]
fn a_run_stays_with_its_session_until_its_last() {
    let store = MemoryStore::new();
    chain(&store, &["a", "b", "c"]);
    let (mut one, mut two) = (Worker::new(&store, 0), Worker::new(&store, 0));
    let runs = one.claim("h", 5, 2, 1);
    assert_eq!(shown(&runs), [["a/0/0", "b/0/0"]]);
    let [a, b] = &runs[0].deliveries[..] else { panic!("two of them") };
    assert_eq!(one.complete(a, RunPart::Continues, 1), Settled::Applied);
    assert!(two.claim("h", 5, 2, 1).is_empty(), "b is held, c waits behind it");
    assert_eq!(one.complete(b, RunPart::Last, 1), Settled::Applied);
    assert_eq!(shown(&two.claim("h", 5, 2, 1)), [["c/0/0"]]);
    assert_eq!([one.complete(a, RunPart::Last, 1), one.complete(b, RunPart::Last, 1)], [Settled::Gone; 2]);
}

#[test]
fn the_last_of_a_run_hands_back_what_was_prefetched() {
    let store = MemoryStore::new();
    chain(&store, &["a", "b", "c"]);
    let (mut one, mut two) = (Worker::new(&store, 0), Worker::new(&store, 0));
    let runs = one.claim("h", 1, 3, 1);
    assert_eq!(one.complete(&runs[0].deliveries[0], RunPart::Last, 1), Settled::Applied);
    assert_eq!(shown(&two.claim("h", 1, 3, 1)), [["b/1/0"]], "claimed before, so alone and under a new token");
    assert_eq!(one.complete(&runs[0].deliveries[1], RunPart::Last, 1), Settled::Lost);
}

#[test]
fn a_run_has_only_consecutive_due_deliveries_that_nobody_claimed_before() {
    let store = MemoryStore::new();
    let key = |id, due_at| event(id, Some("k"), &["h"], due_at);
    publish(&store, vec![key("a", 0), key("b", 0), key("later", 50), key("c", 0)]);
    let mut worker = Worker::new(&store, 0);
    assert_eq!(shown(&worker.claim("h", 9, 9, 10)), [["a/0/0", "b/0/0"]]);
    assert!(worker.claim("h", 9, 9, 60).is_empty());
}

#[test]
fn a_run_ends_before_a_delivery_that_was_claimed_before() {
    let store = MemoryStore::new();
    chain(&store, &["b", "c", "d"]);
    let mut worker = Worker::new(&store, 0);
    let run = worker.claim("h", 1, 2, 1).remove(0).deliveries;
    worker.complete(&run[0], RunPart::Continues, 1);
    worker.settle(&run[1], Verdict::Release, &[], 1);
    // An event of the key that is earlier, for a handler it gets only now.
    store.shared.lock().events.get_mut(&1).unwrap().handlers.clear();
    publish(&store, vec![event("b", Some("k"), &["h"], 0)]);
    let run = worker.claim("h", 9, 9, 1);
    assert_eq!(shown(&run), [["b/0/0"]]);
    worker.complete(&run[0].deliveries[0], RunPart::Last, 1);
    let run = worker.claim("h", 9, 9, 1);
    assert_eq!(shown(&run), [["c/1/0"]]);
    worker.complete(&run[0].deliveries[0], RunPart::Last, 1);
    assert_eq!(shown(&worker.claim("h", 9, 9, 1)), [["d/0/0"]]);
}

#[test]
fn a_failure_blocks_the_key_and_drops_the_rest_of_its_run() {
    let store = MemoryStore::new();
    chain(&store, &["a", "b", "c"]);
    let mut worker = Worker::new(&store, 0);
    let run = worker.claim("h", 1, 3, 1).remove(0).deliveries;
    // The rest is not named here: it leaves the session all the same.
    assert_eq!(worker.settle(&run[0], failed(10), &[], 1), Settled::Applied);
    assert!(worker.claim("h", 9, 9, 5).is_empty(), "the head is not due");
    assert_eq!(worker.complete(&run[1], RunPart::Last, 5), Settled::Lost);
    assert_eq!(worker.settle(&run[0], failed(99), &run[1..], 5), Settled::Lost, "a repeat changes nothing");
    assert_eq!(shown(&worker.claim("h", 9, 9, 10)), [["a/1/1"]], "one that failed runs alone");
}

#[test]
fn a_dead_head_releases_its_followers_and_comes_back_first() {
    let store = MemoryStore::new();
    chain(&store, &["a", "b", "c"]);
    let mut worker = Worker::new(&store, 0);
    let run = worker.claim("h", 1, 1, 1).remove(0).deliveries;
    worker.settle(&run[0], buried(), &[], 1);
    let run = worker.claim("h", 1, 2, 1).remove(0).deliveries;
    assert_eq!(run[0].event.id, "b");
    let dead = DeliveryId::new(handler("h"), EventId::new("a").unwrap());
    assert_eq!(done(store.requeue(&[dead.clone(), dead], at(2))).unwrap(), [Requeued::Requeued, Requeued::NotDead]);
    assert!(worker.claim("h", 9, 9, 2).is_empty(), "the run of b and c goes on first");
    worker.complete(&run[0], RunPart::Continues, 2);
    assert!(worker.claim("h", 9, 9, 2).is_empty());
    worker.settle(&run[1], Verdict::Release, &[], 2);
    assert_eq!(shown(&worker.claim("h", 9, 9, 2)), [["a/1/0"]], "its attempts are fresh, its token is not");
}

#[test]
fn a_handler_added_later_is_served_in_the_order_of_the_key() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", Some("k"), &["g"], 0), event("b", Some("k"), &["g", "h"], 0)]);
    let known = publish(&store, vec![event("a", Some("k"), &["g", "h", "h"], 0)]);
    assert_eq!(known.outcomes, [crate::store::AppendOutcome::Known { added: 1 }]);
    let mut worker = Worker::new(&store, 0);
    assert_eq!(shown(&worker.claim("h", 9, 1, 0)), [["a/0/0"]]);
}

#[test]
fn the_oldest_due_of_all_handlers_comes_first_and_limits_hold() {
    let store = MemoryStore::new();
    publish(&store, vec![event("g1", None, &["g"], 3), event("h1", None, &["h"], 1), event("g2", None, &["g"], 2)]);
    let mut worker = Worker::new(&store, 0);
    let claim = |worker: &mut Worker, slots: &[(&'static str, usize)], limit| {
        let slots: Vec<_> = slots.iter().map(|&(name, limit)| HandlerSlots::new(handler(name), limit)).collect();
        let turn = worker.turn(&TurnRequest::new(at(9)).claiming(ClaimRequest::new(&slots, limit, 1))).unwrap();
        (shown(&turn.runs).concat(), turn.more)
    };
    assert_eq!(claim(&mut worker, &[("g", 9), ("h", 9)], 0), (vec![], true));
    assert_eq!(claim(&mut worker, &[("g", 0), ("unknown", 9)], 9), (vec![], true));
    assert_eq!(claim(&mut worker, &[("g", 1), ("h", 9)], 9), (vec!["h1/0/0".to_owned(), "g2/0/0".to_owned()], true));
    assert_eq!(claim(&mut worker, &[("h", 9), ("g", 1), ("g", 1)], 9), (vec!["g1/0/0".to_owned()], false));
}
