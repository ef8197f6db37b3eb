//! Idempotent appends: an event id is stored once, and a handler that had its delivery never gets another.

use relaybus::store::{AppendOutcome, DeliveryQuery, DeliveryStatus, Settled, StoreTransaction};

use super::StoreFactory;
use super::kit::{Rig, append, append_in, at, begin, buried, event, handler, ids};

/// An id that is stored again is known, and adds nothing.
pub async fn an_id_is_stored_once<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    for second in 1..4 {
        let outcomes = rig.append([event("e1"), event("e2").key("k")], at(second)).await;
        assert_eq!(outcomes, [AppendOutcome::Known { added: 0 }; 2]);
    }
    let mut worker = rig.worker(&["h"], at(5)).await;
    assert_eq!(worker.drain(at(5)).await.len(), 2);
    rig.close().await;
}

/// A handler that already completed an event never gets it again.
pub async fn a_completed_handler_gets_nothing_again<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    assert_eq!(worker.drain(at(1)).await.len(), 2);
    let outcomes = rig.append([event("e1"), event("e2").key("k"), event("e1")], at(2)).await;
    assert_eq!(outcomes, [AppendOutcome::Known { added: 0 }; 3]);
    worker.expect_nothing(at(3)).await;
    rig.close().await;
}

/// A handler added to an event later gets it, the others do not, whatever has completed.
pub async fn a_handler_added_later_gets_the_event<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").to(&["done", "open"])], at(0)).await;
    let mut worker = rig.worker(&["done"], at(1)).await;
    assert_eq!(ids(&worker.drain(at(1)).await), ["e1"]);
    worker.close(at(1)).await;
    let outcomes = rig.append([event("e1").to(&["done", "open", "new", "newer"])], at(2)).await;
    assert_eq!(outcomes, [AppendOutcome::Known { added: 2 }]);
    let outcomes = rig.append([event("e1").to(&["newer", "newest"])], at(3)).await;
    assert_eq!(outcomes, [AppendOutcome::Known { added: 1 }]);
    let mut worker = rig.worker(&["done", "open", "new", "newer", "newest"], at(4)).await;
    let done = worker.drain(at(4)).await;
    let mut handlers: Vec<&str> = done.iter().map(|claimed| claimed.lease.handler.as_str()).collect();
    handlers.sort_unstable();
    assert_eq!(handlers, ["new", "newer", "newest", "open"]);
    rig.close().await;
}

/// An event stored without handlers delivers to those that are added later.
pub async fn handlers_may_come_after_an_event<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").to(&[])], at(0)).await;
    assert_eq!(rig.append([event("e1")], at(1)).await, [AppendOutcome::Known { added: 1 }]);
    let mut worker = rig.worker(&["h"], at(2)).await;
    assert_eq!(ids(&worker.drain(at(2)).await), ["e1"]);
    rig.close().await;
}

/// A delivery that is running is not doubled by a repeated append.
pub async fn a_running_delivery_is_not_doubled<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let held = worker.claim_all(2, at(1)).await;
    let outcomes = rig.append([event("e1"), event("e2").key("k")], at(2)).await;
    assert_eq!(outcomes, [AppendOutcome::Known { added: 0 }; 2]);
    worker.expect_nothing(at(3)).await;
    for claimed in &held {
        assert_eq!(worker.complete(claimed, at(4)).await, Settled::Applied);
    }
    worker.expect_nothing(at(5)).await;
    rig.close().await;
}

/// A dead delivery stays dead when its event comes again.
pub async fn a_dead_delivery_is_not_revived<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_event("e1", at(1)).await;
    worker.settle(&claimed.lease, buried(), at(2)).await;
    assert_eq!(rig.append([event("e1")], at(3)).await, [AppendOutcome::Known { added: 0 }]);
    worker.expect_nothing(at(4)).await;
    let all = rig.deliveries(DeliveryQuery::all(), at(4)).await;
    assert_eq!(all.iter().map(|record| record.status).collect::<Vec<_>>(), [DeliveryStatus::Dead]);
    rig.close().await;
}

/// An id that comes twice in one batch is stored once.
pub async fn duplicates_within_a_batch_are_known<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let drafts =
        [event("e1").key("k"), event("e2").key("k"), event("e1").key("k"), event("e2").key("k").to(&["h", "i"])];
    let outcomes = rig.append(drafts, at(0)).await;
    assert_eq!(
        outcomes,
        [
            AppendOutcome::Stored { deliveries: 1 },
            AppendOutcome::Stored { deliveries: 1 },
            AppendOutcome::Known { added: 0 },
            AppendOutcome::Known { added: 1 },
        ]
    );
    let mut worker = rig.worker(&["h"], at(1)).await;
    assert_eq!(ids(&worker.drain(at(1)).await), ["e1", "e2"]);
    rig.close().await;
}

/// What was stored first under an id stays: a later copy changes nothing of it.
pub async fn the_first_copy_stays<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k").payload(r#"{"copy":1}"#)], at(0)).await;
    let copy = event("e1").key("l").payload(r#"{"copy":2}"#).event_type("suite.other").to(&["h", "i"]);
    assert_eq!(rig.append([copy], at(1)).await, [AppendOutcome::Known { added: 1 }]);
    let mut worker = rig.worker(&["h", "i"], at(2)).await;
    for claimed in worker.drain(at(2)).await {
        assert_eq!(*claimed.event, event("e1").key("k").payload(r#"{"copy":1}"#).envelope);
        assert_eq!(claimed.stored_at, at(0));
    }
    rig.close().await;
}

/// An id whose transaction rolled back is free.
pub async fn a_rolled_back_id_is_free<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").to(&["a"])], at(0)).await;
    let mut tx = begin(&**rig.store()).await;
    let outcomes = append_in(&**rig.store(), &mut tx, [event("e1").to(&["a", "b"]), event("e2")], at(1)).await;
    assert_eq!(outcomes, [AppendOutcome::Known { added: 1 }, AppendOutcome::Stored { deliveries: 1 }]);
    tx.rollback().await.expect("rollback");
    let outcomes = rig.append([event("e1").to(&["a", "b"]), event("e2")], at(2)).await;
    assert_eq!(outcomes, [AppendOutcome::Known { added: 1 }, AppendOutcome::Stored { deliveries: 1 }]);
    rig.close().await;
}

/// Many that store one id at the same time store it once, and each handler gets one delivery.
pub async fn racing_appends_store_an_id_once<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    let stores = [rig.store().clone(), rig.another().await, rig.another().await];
    for round in 0..5_i64 {
        let id = format!("e{round}");
        let mut tasks = Vec::new();
        for n in 0..15 {
            let (store, id) = (stores[n % 3].clone(), id.clone());
            let own = format!("own{}", n % 5);
            tasks.push(tokio::spawn(async move {
                append(&*store, [event(&id).key("k").to(&["h", &own])], at(round)).await[0]
            }));
        }
        let mut stored = 0;
        let mut deliveries = 0;
        for task in tasks {
            let outcome = task.await.expect("an append");
            stored += usize::from(matches!(outcome, AppendOutcome::Stored { .. }));
            deliveries += outcome.deliveries();
        }
        assert_eq!((stored, deliveries), (1, 6), "stored once, for `h` and five others");
        let of_h = rig.deliveries(DeliveryQuery::all().handler(handler("h")), at(round)).await;
        assert_eq!(of_h.len(), usize::try_from(round).unwrap() + 1);
    }
    let mut worker = rig.worker(&["h"], at(10)).await;
    assert_eq!(ids(&worker.drain(at(10)).await), ["e0", "e1", "e2", "e3", "e4"]);
    rig.close().await;
}
