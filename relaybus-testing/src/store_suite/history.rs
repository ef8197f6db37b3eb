//! The completion history: kept where the store says so, and nothing pretended where it does not.

use relaybus::store::{Completed, DeliveryQuery, DeliveryStatus, RunPart, Settled, StoreTransaction};
use relaybus::{EventStore, EventType};

use super::StoreFactory;
use super::kit::{Rig, again, at, begin, event, handler};

/// Completed deliveries are counted and listed by a store with a history, and by no other.
pub async fn completed_deliveries_are_listed_with_a_history<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..4).map(|n| event(&format!("e{n}")).key("k").to(&["a", "b"])), at(0)).await;
    let mut worker = rig.worker(&["a"], at(1)).await;
    assert_eq!(worker.drain(at(7)).await.len(), 4);
    let listed = rig.deliveries(DeliveryQuery::all().status(DeliveryStatus::Completed), at(8)).await;
    let kept = if rig.keeps_history() { 4 } else { 0 };
    assert_eq!((listed.len(), rig.statistics(at(8)).await.completed), (kept, kept as u64));
    for record in &listed {
        assert_eq!((record.status, record.id.handler().as_str()), (DeliveryStatus::Completed, "a"));
        assert_eq!((record.ended_at, record.stored_at), (Some(at(7)), at(0)));
        assert_eq!((record.attempts, &record.token), (0, &None), "a first success charges nothing");
        assert_eq!(record.key.as_ref().map(|key| key.as_str()), Some("k"));
        assert_eq!(record.event_type, "suite.happened");
    }
    let all = rig.deliveries(DeliveryQuery::all(), at(8)).await;
    assert_eq!(all.len(), 4 + kept, "pending ones of the other handler, and the history");
    rig.close().await;
}

/// A record says how many attempts had failed before the success.
pub async fn a_record_keeps_the_attempts<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for second in [1, 2, 3] {
        let claimed = worker.claim_event("e1", at(second)).await;
        worker.settle(&claimed.lease, again(at(second)), at(second)).await;
    }
    let claimed = worker.claim_event("e1", at(4)).await;
    assert_eq!(worker.complete(&claimed, at(5)).await, Settled::Applied);
    let record = rig.delivery("h", "e1", at(6)).await;
    assert_eq!(record.map(|record| record.attempts), rig.keeps_history().then_some(3));
    rig.close().await;
}

/// A completion that is repeated leaves one record.
pub async fn a_repeated_completion_leaves_one_record<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_event("e1", at(1)).await;
    worker.complete(&claimed, at(2)).await;
    worker.complete(&claimed, at(3)).await;
    let listed = rig.deliveries(DeliveryQuery::all(), at(4)).await;
    assert_eq!(listed.len(), usize::from(rig.keeps_history()));
    assert!(listed.iter().all(|record| record.ended_at == Some(at(2))));
    rig.close().await;
}

/// The record of a transactional handler is written with its transaction.
pub async fn a_transaction_writes_its_record<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_event("e1", at(1)).await;
    let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
    let query = || DeliveryQuery::all().status(DeliveryStatus::Completed);
    for (commits, records) in [(false, 0), (true, usize::from(rig.keeps_history()))] {
        let mut tx = begin(&**rig.store()).await;
        assert_eq!(rig.store().complete_in(&mut tx, &completed, at(2)).await.unwrap(), Settled::Applied);
        if commits {
            tx.commit().await.expect("commit");
        } else {
            tx.rollback().await.expect("rollback");
        }
        assert_eq!(rig.deliveries(query(), at(3)).await.len(), records);
    }
    rig.close().await;
}

/// The history is filtered and paged like everything else.
pub async fn the_history_is_filtered<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..7).map(|n| event(&format!("e{n}")).event_type("suite.odd").to(&["a", "b"])), at(0)).await;
    rig.append([event("x").key("k").to(&["a"])], at(0)).await;
    let mut worker = rig.worker(&["a", "b"], at(1)).await;
    worker.drain(at(1)).await;
    let kept = |count: usize| if rig.keeps_history() { count } else { 0 };
    let completed = || DeliveryQuery::all().status(DeliveryStatus::Completed);
    assert_eq!(rig.deliveries(completed().limit(2), at(2)).await.len(), kept(15));
    assert_eq!(rig.deliveries(completed().handler(handler("a")), at(2)).await.len(), kept(8));
    let odd = EventType::from_static("suite.odd");
    assert_eq!(rig.deliveries(completed().event_type(odd).limit(3), at(2)).await.len(), kept(14));
    rig.close().await;
}
