//! Order: the deliveries of one handler and key, one at a time and in commit order.

use relaybus::store::{DeliveryId, Requeued, Settled, Verdict};

use relaybus::EventStore;

use super::StoreFactory;
use super::kit::{Rig, Worker, after_the_lease, again, at, buried, event, handler, ids};

/// The deliveries of a key are handed out one at a time.
pub async fn one_delivery_of_a_key_at_a_time<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    rig.append((0..4).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let other = rig.another().await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut neighbour = Worker::open(&other, &["h"], at(1)).await;
    for n in 0..4 {
        let head = worker.claim_event(&format!("e{n}"), at(1)).await;
        worker.expect_nothing(at(1)).await;
        neighbour.expect_nothing(at(1)).await;
        assert_eq!(worker.complete(&head, at(1)).await, Settled::Applied);
    }
    rig.close().await;
}

/// The order of a key is that of storing, not of ids, due times or numbers read as text.
pub async fn the_order_is_that_of_storing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut names = Vec::new();
    for n in (0..120_i64).rev() {
        let name = format!("e{n}");
        // Later ones became due earlier.
        rig.append([event(&name).key("k").due(at(n))], at(130)).await;
        names.push(name);
    }
    let mut worker = rig.worker(&["h"], at(200)).await;
    assert_eq!(ids(&worker.drain(at(200)).await), names);
    rig.close().await;
}

/// A head that waits for its retry holds back its followers, and nobody else.
pub async fn a_retrying_head_blocks_its_key<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k"), event("e2").key("k"), event("other").key("l"), event("none")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_all(3, at(1)).await;
    for claimed in &claimed {
        let answer = match claimed.event.id.as_str() {
            "e1" => worker.settle(&claimed.lease, again(at(60)), at(2)).await,
            "other" | "none" => worker.complete(claimed, at(2)).await,
            other => panic!("{other} was handed out beside its head"),
        };
        assert_eq!(answer, Settled::Applied);
    }
    worker.expect_nothing(at(59)).await;
    assert_eq!(ids(&worker.drain(at(60)).await), ["e1", "e2"]);
    rig.close().await;
}

/// A head that is not due yet holds back followers that are.
pub async fn a_delayed_head_blocks_its_key<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k").due(at(50)), event("e2").key("k")], at(0)).await;
    rig.append([event("e3").key("k")], at(1)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    worker.expect_nothing(at(49)).await;
    assert_eq!(ids(&worker.drain(at(50)).await), ["e1", "e2", "e3"]);
    rig.close().await;
}

/// A dead head releases its followers.
pub async fn a_dead_head_releases_its_key<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=3).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for dead in ["e1", "e2"] {
        let head = worker.claim_event(dead, at(1)).await;
        assert_eq!(worker.settle(&head.lease, buried(), at(2)).await, Settled::Applied);
    }
    assert_eq!(ids(&worker.drain(at(3)).await), ["e3"]);
    rig.close().await;
}

/// A released head keeps its place.
pub async fn a_released_head_keeps_its_place<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=3).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for _ in 0..3 {
        let head = worker.claim_event("e1", at(1)).await;
        assert_eq!(worker.settle(&head.lease, Verdict::Release, at(1)).await, Settled::Applied);
    }
    assert_eq!(ids(&worker.drain(at(2)).await), ["e1", "e2", "e3"]);
    rig.close().await;
}

/// The key of a dead worker goes on in order.
pub async fn a_takeover_keeps_the_order<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=4).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let mut dead = rig.worker(&["h"], at(1)).await;
    let first = dead.claim_event("e1", at(1)).await;
    dead.complete(&first, at(1)).await;
    dead.claim_event("e2", at(1)).await;
    dead.crash();
    let now = after_the_lease();
    rig.append([event("e5").key("k")], now).await;
    let mut heir = rig.worker(&["h"], now).await;
    let done = heir.drain(now).await;
    assert_eq!(ids(&done), ["e2", "e3", "e4", "e5"]);
    let attempts: Vec<u32> = done.iter().map(|claimed| claimed.attempts).collect();
    assert_eq!(attempts, [1, 0, 0, 0]);
    rig.close().await;
}

/// A requeued head goes before followers that have not run yet.
pub async fn a_requeued_head_goes_before_waiting_followers<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=3).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let head = worker.claim_event("e1", at(1)).await;
    worker.settle(&head.lease, buried(), at(2)).await;
    assert_eq!(rig.store().requeue(&[head.lease.delivery_id()], at(3)).await.unwrap(), [Requeued::Requeued]);
    assert_eq!(ids(&worker.drain(at(4)).await), ["e1", "e2", "e3"]);
    rig.close().await;
}

/// A requeued head waits while a follower runs: never two of a key at once.
pub async fn a_requeued_head_waits_for_a_running_follower<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=4).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let head = worker.claim_event("e1", at(1)).await;
    worker.settle(&head.lease, buried(), at(2)).await;
    let follower = worker.claim_event("e2", at(3)).await;
    assert_eq!(rig.store().requeue(&[head.lease.delivery_id()], at(4)).await.unwrap(), [Requeued::Requeued]);
    worker.expect_nothing(at(5)).await;
    assert_eq!(worker.complete(&follower, at(6)).await, Settled::Applied);
    assert_eq!(ids(&worker.drain(at(7)).await), ["e1", "e3", "e4"]);
    rig.close().await;
}

/// A follower that fails behind a requeued head waits for it.
pub async fn a_failed_follower_waits_for_a_requeued_head<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=3).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let head = worker.claim_event("e1", at(1)).await;
    worker.settle(&head.lease, buried(), at(2)).await;
    let follower = worker.claim_event("e2", at(3)).await;
    rig.store().requeue(&[head.lease.delivery_id()], at(4)).await.unwrap();
    assert_eq!(worker.settle(&follower.lease, again(at(5)), at(5)).await, Settled::Applied);
    assert_eq!(ids(&worker.drain(at(6)).await), ["e1", "e2", "e3"]);
    rig.close().await;
}

/// Each handler has its own order of a key: a blocked one does not hold back another.
pub async fn handlers_of_a_key_are_independent<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=3).map(|n| event(&format!("e{n}")).key("k").to(&["a", "b"])), at(0)).await;
    let mut worker = rig.worker(&["a", "b"], at(1)).await;
    let heads = worker.claim_all(2, at(1)).await;
    assert_eq!(ids(&heads), ["e1", "e1"]);
    for head in &heads {
        if head.lease.handler == "a" {
            worker.settle(&head.lease, again(at(500)), at(2)).await;
        } else {
            worker.complete(head, at(2)).await;
        }
    }
    let done = worker.drain(at(3)).await;
    assert_eq!(ids(&done), ["e2", "e3"]);
    assert!(done.iter().all(|claimed| claimed.lease.handler == "b"));
    assert_eq!(ids(&worker.drain(at(500)).await), ["e1", "e2", "e3"]);
    rig.close().await;
}

/// Keys are independent of each other, and unkeyed deliveries of everything.
pub async fn keys_are_independent<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let drafts = (0..20).map(|n| event(&format!("head{n:02}")).key(&format!("k{n}")));
    rig.append(drafts.chain((0..20).map(|n| event(&format!("none{n:02}")))), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    assert_eq!(worker.claim_all(40, at(1)).await.len(), 40, "all of them at once");
    rig.close().await;
}

/// A handler that is added later to an event gets it before later events of its key.
pub async fn a_handler_added_later_gets_the_earlier_event_first<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k").to(&["a"]), event("e2").key("k").to(&["a", "b"])], at(0)).await;
    rig.append([event("e3").key("k").to(&["a", "b"])], at(1)).await;
    rig.append([event("e1").key("k").to(&["a", "b"])], at(2)).await;
    let mut worker = rig.worker(&["b"], at(3)).await;
    assert_eq!(ids(&worker.drain(at(3)).await), ["e1", "e2", "e3"]);
    rig.close().await;
}

/// A delivery added to an earlier event waits while a later one of its key runs.
pub async fn a_delivery_added_later_waits_for_a_running_one<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k").to(&["a"]), event("e2").key("k").to(&["b"])], at(0)).await;
    rig.append([event("e3").key("k").to(&["b"])], at(0)).await;
    let mut worker = rig.worker(&["b"], at(1)).await;
    let running = worker.claim_event("e2", at(1)).await;
    rig.append([event("e1").key("k").to(&["b"])], at(2)).await;
    worker.expect_nothing(at(3)).await;
    assert_eq!(worker.complete(&running, at(4)).await, Settled::Applied);
    assert_eq!(ids(&worker.drain(at(5)).await), ["e1", "e3"]);
    rig.close().await;
}

/// The order holds for events that several instances store.
pub async fn the_order_holds_across_instances<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    let other = rig.another().await;
    let mut names = Vec::new();
    for n in 0..20 {
        let name = format!("e{}", 20 - n);
        let store = if n % 2 == 0 { rig.store() } else { &other };
        super::kit::append(&**store, [event(&name).key("k")], at(n)).await;
        names.push(name);
    }
    let mut worker = Worker::open(&other, &["h"], at(30)).await;
    assert_eq!(ids(&worker.drain(at(30)).await), names);
    rig.close().await;
}

/// Requeueing several dead deliveries of a key runs them in their order.
pub async fn requeued_deliveries_run_in_their_order<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=4).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for name in ["e1", "e2", "e3"] {
        let head = worker.claim_event(name, at(1)).await;
        worker.settle(&head.lease, buried(), at(1)).await;
    }
    let wanted: Vec<DeliveryId> =
        ["e3", "e1", "e2"].map(|id| DeliveryId::new(handler("h"), relaybus::EventId::new(id).unwrap())).into();
    assert_eq!(rig.store().requeue(&wanted, at(2)).await.unwrap(), [Requeued::Requeued; 3]);
    assert_eq!(ids(&worker.drain(at(3)).await), ["e1", "e2", "e3", "e4"]);
    rig.close().await;
}
