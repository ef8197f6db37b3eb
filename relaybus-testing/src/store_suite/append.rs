//! Appending: events are stored with one delivery for each handler.

use relaybus::store::{AppendOutcome, DeliveryQuery, Settled};

use super::StoreFactory;
use super::kit::{Rig, at, event, ids, sorted_ids};

/// An appended event is handed to its handler, once.
pub async fn an_event_is_delivered_to_its_handler<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let outcomes = rig.append([event("e1")], at(0)).await;
    assert_eq!(outcomes, [AppendOutcome::Stored { deliveries: 1 }]);
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_event("e1", at(1)).await;
    assert_eq!(claimed.lease.handler, "h");
    assert_eq!(claimed.stored_at, at(0));
    assert_eq!(*claimed.event, event("e1").envelope);
    assert_eq!(worker.complete(&claimed, at(2)).await, Settled::Applied);
    worker.expect_nothing(at(3)).await;
    rig.close().await;
}

/// Each handler of an event has its own delivery: completing one leaves the others.
pub async fn every_handler_gets_its_own_delivery<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").to(&["a", "b", "c"])], at(0)).await;
    let mut first = rig.worker(&["b"], at(1)).await;
    assert_eq!(ids(&first.drain(at(1)).await), ["e1"]);
    first.close(at(2)).await;
    let mut rest = rig.worker(&["a", "b", "c"], at(3)).await;
    let done = rest.drain(at(3)).await;
    let mut handlers: Vec<&str> = done.iter().map(|claimed| claimed.lease.handler.as_str()).collect();
    handlers.sort_unstable();
    assert_eq!(handlers, ["a", "c"]);
    rig.close().await;
}

/// The outcome of each event says how many deliveries it got, in the order of the batch.
pub async fn outcomes_count_the_deliveries_created<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let drafts = [event("e1").to(&["a", "b"]), event("e2").to(&[]), event("e3").key("k").to(&["a", "b", "c"])];
    let outcomes = rig.append(drafts, at(0)).await;
    let counts: Vec<usize> = outcomes.iter().map(|outcome| outcome.deliveries()).collect();
    assert_eq!(counts, [2, 0, 3]);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, AppendOutcome::Stored { .. })), "{outcomes:?}");
    assert_eq!(rig.deliveries(DeliveryQuery::all(), at(0)).await.len(), 5);
    rig.close().await;
}

/// An event that nobody handles is stored all the same, so that its id is known.
pub async fn an_event_without_handlers_is_stored<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    assert_eq!(rig.append([event("e1").to(&[])], at(0)).await, [AppendOutcome::Stored { deliveries: 0 }]);
    assert_eq!(rig.append([event("e1").to(&[])], at(1)).await, [AppendOutcome::Known { added: 0 }]);
    rig.worker(&["h"], at(2)).await.expect_nothing(at(2)).await;
    rig.close().await;
}

/// An empty batch is no error and stores nothing.
pub async fn an_empty_batch_is_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    assert!(rig.append([], at(0)).await.is_empty());
    assert!(rig.deliveries(DeliveryQuery::all(), at(0)).await.is_empty());
    rig.close().await;
}

/// A delivery with a delay is handed out when it is due and not before.
pub async fn a_delayed_delivery_waits_for_its_time<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("late").due(at(20)), event("later").due(at(40)), event("now")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(0)).await;
    assert_eq!(ids(&worker.drain(at(0)).await), ["now"]);
    assert!(worker.drain(at(19)).await.is_empty());
    assert_eq!(ids(&worker.drain(at(20)).await), ["late"]);
    assert_eq!(ids(&worker.drain(at(41)).await), ["later"]);
    rig.close().await;
}

/// Events of one batch and key are handled in the order in which they were published, whatever their ids are.
pub async fn a_batch_keeps_the_order_of_publication<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let names = ["m", "z", "a", "10", "9", "b", "Z", "0"];
    rig.append(names.map(|name| event(name).key("k")), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    assert_eq!(ids(&worker.drain(at(1)).await), names);
    rig.close().await;
}

/// A batch of thousands of events is stored as a whole.
pub async fn a_large_batch_is_stored_completely<F: StoreFactory>(f: &F) {
    const EVENTS: usize = 3_000;
    let rig = Rig::open(f).await;
    let drafts = (0..EVENTS).map(|n| {
        let draft = event(&format!("e{n:05}")).to(&["a", "b"]);
        if n % 3 == 0 { draft } else { draft.key(&format!("k{}", n % 50)) }
    });
    let outcomes = rig.append(drafts, at(0)).await;
    assert!(outcomes.iter().all(|outcome| *outcome == AppendOutcome::Stored { deliveries: 2 }));
    let statistics = rig.statistics(at(0)).await;
    assert_eq!(statistics.pending, 2 * EVENTS as u64);
    let mut worker = rig.worker(&["a", "b"], at(1)).await;
    assert_eq!(worker.claim_all(200, at(1)).await.len(), 200);
    rig.close().await;
}

/// Events whose ids were made just now are stored and known like all others.
pub async fn fresh_ids_are_stored_like_others<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").fresh(), event("e2").fresh().key("k"), event("e3").fresh().key("k")], at(0)).await;
    rig.append([event("e4").fresh().key("k"), event("old"), event("e5").fresh()], at(0)).await;
    assert_eq!(rig.append([event("e2").key("k")], at(1)).await, [AppendOutcome::Known { added: 0 }]);
    let mut worker = rig.worker(&["h"], at(1)).await;
    let done = worker.drain(at(1)).await;
    assert_eq!(sorted_ids(&done), ["e1", "e2", "e3", "e4", "e5", "old"]);
    rig.close().await;
}
