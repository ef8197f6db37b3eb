//! Purging: what is past its retention goes, in bounded steps, and nothing else does.
//!
//! A store may measure a completion that followed its event closely from the event, and may keep its newest event. So
//! the cases leave days between what is kept and what goes, and store a younger event beside those that are purged.

use relaybus::store::{AppendOutcome, DeliveryQuery, DeliveryStatus, PurgeRequest, Purged, Settled};
use relaybus::{EventStore, Timestamp};

use super::StoreFactory;
use super::kit::{Rig, again, at, buried, event, handler, ids};

fn day(n: i64) -> Timestamp {
    at(n * 86_400)
}

fn completed_before(cutoff: Timestamp, limit: usize) -> PurgeRequest {
    let mut request = PurgeRequest::new(limit);
    request.completed_before = Some(cutoff);
    request
}

fn dead_before(cutoff: Timestamp, limit: usize) -> PurgeRequest {
    let mut request = PurgeRequest::new(limit);
    request.dead_before = Some(cutoff);
    request
}

/// Purges until the store says that there is no more.
async fn purge_all<S: EventStore>(store: &S, request: &PurgeRequest) -> Purged {
    let mut sum = Purged::default();
    for _ in 0..1_000 {
        let purged = store.purge(request).await.expect("purge");
        sum.events += purged.events;
        sum.dead += purged.dead;
        sum.records += purged.records;
        if !purged.more {
            return sum;
        }
    }
    panic!("a purge that never ends: {sum:?}");
}

/// Whether the store still knows an id. Asking stores it when it does not.
async fn knows<F: StoreFactory>(rig: &Rig<'_, F>, id: &str, now: Timestamp) -> bool {
    matches!(rig.append([event(id).to(&[])], now).await[0], AppendOutcome::Known { .. })
}

/// Stores an event that is younger than all that is purged.
async fn keep_one<F: StoreFactory>(rig: &Rig<'_, F>, now: Timestamp) {
    rig.append([event("youngest").to(&["nobody"])], now).await;
}

/// Events whose deliveries all completed before the cut go; their ids are free again.
pub async fn completed_events_go<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..6).map(|n| event(&format!("e{n}")).to(&["a", "b"])), day(0)).await;
    let mut worker = rig.worker(&["a", "b"], day(0)).await;
    assert_eq!(worker.drain(day(0)).await.len(), 12);
    keep_one(&rig, day(20)).await;
    let purged = purge_all(&**rig.store(), &completed_before(day(10), 1_000)).await;
    assert_eq!((purged.events, purged.dead), (6, 0));
    assert_eq!(purged.records, if rig.keeps_history() { 12 } else { 0 });
    assert!(rig.deliveries(DeliveryQuery::all().status(DeliveryStatus::Completed), day(20)).await.is_empty());
    for n in 0..6 {
        let again = rig.append([event(&format!("e{n}"))], day(20)).await;
        assert_eq!(again, [AppendOutcome::Stored { deliveries: 1 }], "behind the horizon an id is new");
    }
    assert!(knows(&rig, "youngest", day(20)).await);
    rig.close().await;
}

/// Events whose deliveries completed after the cut stay, and with them the memory of their ids.
pub async fn recently_completed_events_stay<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], day(30)).await;
    let mut worker = rig.worker(&["h"], day(30)).await;
    worker.drain(day(30)).await;
    keep_one(&rig, day(31)).await;
    let purged = purge_all(&**rig.store(), &completed_before(day(25), 1_000)).await;
    assert_eq!(purged, Purged::default());
    assert!(knows(&rig, "e1", day(31)).await && knows(&rig, "e2", day(31)).await);
    rig.close().await;
}

/// Retention counts from the completion, not from the event: what waited for days is kept for its time.
pub async fn retention_counts_from_the_completion<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2")], day(0)).await;
    let mut worker = rig.worker(&["h"], day(10)).await;
    assert_eq!(worker.drain(day(10)).await.len(), 2);
    keep_one(&rig, day(20)).await;
    assert_eq!(purge_all(&**rig.store(), &completed_before(day(5), 1_000)).await.events, 0);
    assert!(knows(&rig, "e1", day(20)).await);
    assert_eq!(purge_all(&**rig.store(), &completed_before(day(15), 1_000)).await.events, 2);
    assert!(!knows(&rig, "e1", day(20)).await);
    rig.close().await;
}

/// Retention counts from the last completion of an event's deliveries.
pub async fn retention_counts_from_the_last_completion<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").to(&["fast", "slow"])], day(0)).await;
    let mut fast = rig.worker(&["fast"], day(0)).await;
    fast.drain(day(0)).await;
    fast.close(day(0)).await;
    let mut slow = rig.worker(&["slow"], day(10)).await;
    assert_eq!(slow.drain(day(10)).await.len(), 1);
    keep_one(&rig, day(20)).await;
    assert_eq!(purge_all(&**rig.store(), &completed_before(day(5), 1_000)).await.events, 0);
    assert_eq!(purge_all(&**rig.store(), &completed_before(day(15), 1_000)).await.events, 1);
    rig.close().await;
}

/// Events with a delivery that is pending, waits for a retry, runs or is dead stay, however old.
pub async fn unfinished_events_stay<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let names = ["dead", "pending", "retry", "running"];
    rig.append(names.map(|name| event(name).to(&["done", name])), day(0)).await;
    let mut worker = rig.worker(&["done"], day(0)).await;
    assert_eq!(worker.drain(day(0)).await.len(), 4);
    worker.close(day(0)).await;
    let mut worker = rig.worker(&["dead", "retry", "running"], day(0)).await;
    let mut claimed = worker.claim_all(3, day(0)).await;
    claimed.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    worker.settle(&claimed[0].lease, buried(), day(0)).await;
    worker.settle(&claimed[1].lease, again(day(100)), day(0)).await;
    keep_one(&rig, day(20)).await;
    let purged = purge_all(&**rig.store(), &completed_before(day(15), 1_000)).await;
    assert_eq!((purged.events, purged.dead), (0, 0));
    for name in names {
        assert!(knows(&rig, name, day(20)).await, "{name}");
        assert!(rig.delivery(name, name, day(20)).await.is_some(), "{name}");
    }
    assert_eq!(worker.complete(&claimed[2], day(20)).await, Settled::Applied);
    rig.close().await;
}

/// Dead deliveries older than the cut go, younger ones stay.
pub async fn dead_deliveries_go_when_asked_for<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut worker = rig.worker(&["h"], day(0)).await;
    for (name, when) in [("old", day(1)), ("young", day(12))] {
        rig.append([event(name)], when).await;
        let claimed = worker.claim_event(name, when).await;
        worker.settle(&claimed.lease, buried(), when).await;
    }
    keep_one(&rig, day(20)).await;
    let purged = purge_all(&**rig.store(), &dead_before(day(6), 1_000)).await;
    assert_eq!(purged.dead, 1);
    let left = rig.deliveries(DeliveryQuery::all().status(DeliveryStatus::Dead), day(20)).await;
    assert_eq!(left.iter().map(|record| record.id.event_id().as_str()).collect::<Vec<_>>(), ["young"]);
    rig.close().await;
}

/// An event that is left without deliveries by a purge of dead letters goes with the completed ones.
pub async fn events_of_purged_dead_deliveries_go<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").to(&["h", "i"])], day(0)).await;
    let mut worker = rig.worker(&["h"], day(0)).await;
    for claimed in worker.claim_all(2, day(0)).await {
        worker.settle(&claimed.lease, buried(), day(0)).await;
    }
    keep_one(&rig, day(20)).await;
    let mut request = completed_before(day(10), 1_000);
    request.dead_before = Some(day(10));
    let mut purged = purge_all(&**rig.store(), &request).await;
    let second = purge_all(&**rig.store(), &request).await;
    (purged.events, purged.dead) = (purged.events + second.events, purged.dead + second.dead);
    assert_eq!((purged.events, purged.dead), (1, 2));
    assert!(!knows(&rig, "e1", day(20)).await);
    assert!(knows(&rig, "e2", day(20)).await, "its other handler still waits");
    rig.close().await;
}

/// An event that never had a delivery goes when it is older than the cut.
pub async fn events_without_deliveries_go<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("old").to(&[])], day(0)).await;
    rig.append([event("young").to(&[])], day(12)).await;
    keep_one(&rig, day(20)).await;
    assert_eq!(purge_all(&**rig.store(), &completed_before(day(6), 1_000)).await.events, 1);
    assert!(!knows(&rig, "old", day(20)).await);
    assert!(knows(&rig, "young", day(20)).await);
    rig.close().await;
}

/// A purge that is asked for nothing deletes nothing.
pub async fn nothing_goes_unasked<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("done"), event("dead"), event("none").to(&[])], day(0)).await;
    let mut worker = rig.worker(&["h"], day(0)).await;
    for claimed in worker.claim_all(2, day(0)).await {
        if claimed.event.id == *"dead" {
            worker.settle(&claimed.lease, buried(), day(0)).await;
        } else {
            worker.complete(&claimed, day(0)).await;
        }
    }
    keep_one(&rig, day(20)).await;
    assert_eq!(purge_all(&**rig.store(), &PurgeRequest::new(1_000)).await, Purged::default());
    let purged = purge_all(&**rig.store(), &completed_before(day(10), 1_000)).await;
    assert_eq!((purged.events, purged.dead), (2, 0), "the dead one stays unless it is asked for");
    assert_eq!(rig.statistics(day(20)).await.dead, 1);
    rig.close().await;
}

/// A purge works in steps of about its limit, and says whether there is more.
pub async fn a_purge_works_in_steps<F: StoreFactory>(f: &F) {
    const LIMIT: usize = 10;
    let rig = Rig::open(f).await;
    rig.append((0..45).map(|n| event(&format!("e{n:02}"))), day(0)).await;
    let mut worker = rig.worker(&["h"], day(0)).await;
    assert_eq!(worker.drain(day(0)).await.len(), 45);
    keep_one(&rig, day(20)).await;
    let mut steps = 0;
    let mut events = 0;
    loop {
        let purged = rig.store().purge(&completed_before(day(10), LIMIT)).await.expect("purge");
        assert!(purged.events <= 2 * LIMIT as u64, "{} events for a limit of {LIMIT}", purged.events);
        events += purged.events;
        steps += 1;
        assert!(steps < 100, "a purge that never ends");
        if !purged.more {
            break;
        }
    }
    assert_eq!(events, 45);
    assert!(steps >= 3, "{steps} steps for 45 events at {LIMIT} a step");
    rig.close().await;
}

/// Purging beside a waiting key leaves its order and its deliveries alone.
pub async fn a_purge_leaves_waiting_keys_alone<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..6).map(|n| event(&format!("e{n}")).key("k")), day(0)).await;
    let mut worker = rig.worker(&["h"], day(0)).await;
    let first = worker.claim_event("e0", day(0)).await;
    worker.complete(&first, day(0)).await;
    let second = worker.claim_event("e1", day(0)).await;
    worker.settle(&second.lease, buried(), day(0)).await;
    let third = worker.claim_event("e2", day(0)).await;
    worker.settle(&third.lease, again(day(30)), day(0)).await;
    keep_one(&rig, day(20)).await;
    let mut request = completed_before(day(10), 1_000);
    request.dead_before = Some(day(10));
    purge_all(&**rig.store(), &request).await;
    worker.expect_nothing(day(29)).await;
    assert_eq!(ids(&worker.drain(day(31)).await), ["e2", "e3", "e4", "e5"]);
    rig.close().await;
}

/// A handler that is added to an event while it is purged gets its delivery, whoever comes first.
pub async fn a_purge_loses_no_added_handler<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    let other = rig.another().await;
    for round in 0..12 {
        let id = format!("e{round}");
        rig.append([event(&id)], day(0)).await;
        let mut worker = rig.worker(&["h"], day(0)).await;
        assert_eq!(worker.drain(day(0)).await.len(), 1);
        worker.close(day(0)).await;
        rig.append([event(&format!("youngest{round}")).to(&[])], day(40)).await;
        let purge = tokio::spawn({
            let store = rig.store().clone();
            async move { store.purge(&completed_before(day(10), 1_000)).await.expect("purge") }
        });
        let outcome = super::kit::append(&*other, [event(&id).to(&["late"])], day(20)).await[0];
        purge.await.expect("the purge");
        assert_eq!(outcome.deliveries(), 1, "{outcome:?}");
        assert!(rig.delivery("late", &id, day(20)).await.is_some(), "round {round}: {outcome:?} and nothing there");
    }
    let mut worker = rig.worker(&["late"], day(20)).await;
    assert_eq!(worker.drain(day(20)).await.len(), 12);
    assert!(rig.deliveries(DeliveryQuery::all().handler(handler("late")), day(20)).await.len() <= 12);
    rig.close().await;
}
