//! Settling: completed, rescheduled, buried and released deliveries, each fenced by its lease.

use relaybus::store::{Completed, DeliveryQuery, DeliveryStatus, RunPart, Settled, Settlement, Verdict};

use super::StoreFactory;
use super::kit::{Rig, again, at, buried, event, failure, ids};

/// A failed delivery runs again when it is due, with one attempt charged and the failure kept.
pub async fn a_rescheduled_delivery_comes_back_when_due<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for attempt in 0..4_u32 {
        let now = i64::from(attempt) * 100;
        let claimed = worker.claim_event("e1", at(now + 1)).await;
        assert_eq!(claimed.attempts, attempt);
        assert_eq!(claimed.redelivered(), attempt > 0);
        assert_eq!(worker.settle(&claimed.lease, again(at(now + 100)), at(now + 2)).await, Settled::Applied);
        let record = rig.delivery("h", "e1", at(now + 3)).await.expect("it is listed");
        assert_eq!((record.status, record.attempts), (DeliveryStatus::Pending, attempt + 1));
        assert_eq!((record.due_at, record.token), (at(now + 100), None));
        assert_eq!(record.last_error, Some(failure()));
        worker.expect_nothing(at(now + 99)).await;
    }
    rig.close().await;
}

/// A delivery that is rescheduled for a time that has passed is due at once.
pub async fn a_reschedule_into_the_past_is_due_at_once<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(100)).await;
    let mut worker = rig.worker(&["h"], at(100)).await;
    for claimed in worker.claim_all(2, at(100)).await {
        assert_eq!(worker.settle(&claimed.lease, again(at(5)), at(101)).await, Settled::Applied);
    }
    for claimed in worker.claim_all(2, at(101)).await {
        assert_eq!(claimed.attempts, 1);
    }
    rig.close().await;
}

/// A buried delivery is dead: kept with its failure, and never handed out.
pub async fn a_buried_delivery_is_dead<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_event("e1", at(1)).await;
    assert_eq!(worker.settle(&claimed.lease, buried(), at(2)).await, Settled::Applied);
    worker.expect_nothing(at(3)).await;
    worker.expect_nothing(at(100_000)).await;
    let record = rig.delivery("h", "e1", at(3)).await.expect("it is listed");
    assert_eq!((record.status, record.attempts), (DeliveryStatus::Dead, 1));
    assert_eq!((record.ended_at, record.token), (Some(at(2)), None));
    assert_eq!(record.last_error, Some(failure()));
    rig.close().await;
}

/// Burying what was not run costs no attempt.
pub async fn burying_may_charge_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_event("e1", at(1)).await;
    let verdict = Verdict::Bury { error: failure(), charge: false };
    assert_eq!(worker.settle(&claimed.lease, verdict, at(2)).await, Settled::Applied);
    let record = rig.delivery("h", "e1", at(3)).await.expect("it is listed");
    assert_eq!((record.status, record.attempts), (DeliveryStatus::Dead, 0));
    rig.close().await;
}

/// A released delivery goes back as it was: due as before, nothing charged, no failure.
pub async fn a_released_delivery_goes_back_as_it_was<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").due(at(1)), event("e2").due(at(1)).key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(10)).await;
    for claimed in worker.claim_all(2, at(10)).await {
        assert_eq!(worker.settle(&claimed.lease, Verdict::Release, at(11)).await, Settled::Applied);
        let record = rig.delivery("h", claimed.event.id.as_str(), at(11)).await.expect("it is listed");
        assert_eq!((record.status, record.attempts), (DeliveryStatus::Pending, 0));
        assert_eq!((record.due_at, record.last_error), (at(1), None));
    }
    let back = worker.claim_all(2, at(11)).await;
    assert!(back.iter().all(|claimed| claimed.attempts == 0));
    rig.close().await;
}

/// A release keeps the attempts and the failure of earlier runs.
pub async fn a_release_keeps_earlier_attempts<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_event("e1", at(1)).await;
    worker.settle(&claimed.lease, again(at(10)), at(2)).await;
    let claimed = worker.claim_event("e1", at(10)).await;
    assert_eq!(worker.settle(&claimed.lease, Verdict::Release, at(11)).await, Settled::Applied);
    let record = rig.delivery("h", "e1", at(11)).await.expect("it is listed");
    assert_eq!((record.attempts, record.due_at, record.last_error), (1, at(10), Some(failure())));
    assert_eq!(worker.claim_event("e1", at(12)).await.attempts, 1);
    rig.close().await;
}

/// A completed delivery is gone: it is not handed out, and nothing of it is pending.
pub async fn a_completed_delivery_is_gone<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for claimed in worker.claim_all(2, at(1)).await {
        assert_eq!(worker.complete(&claimed, at(2)).await, Settled::Applied);
    }
    worker.expect_nothing(at(3)).await;
    worker.close(at(4)).await;
    rig.worker(&["h"], at(5)).await.expect_nothing(at(100_000)).await;
    let statistics = rig.statistics(at(5)).await;
    assert_eq!((statistics.pending, statistics.processing, statistics.dead), (0, 0, 0));
    rig.close().await;
}

/// Completing again what was completed answers that it is gone.
pub async fn completing_twice_answers_gone<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k"), event("e3").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_all(2, at(1)).await;
    for answer in [Settled::Applied, Settled::Gone, Settled::Gone] {
        for done in &claimed {
            assert_eq!(worker.complete(done, at(2)).await, answer, "{}", done.event.id);
        }
    }
    assert_eq!(ids(&worker.drain(at(3)).await), ["e3"]);
    rig.close().await;
}

/// A turn that is repeated because its answer was lost answers that its completions are gone, and harms nothing.
pub async fn a_repeated_turn_answers_gone<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..6).map(|n| event(&format!("e{n}")).key("k")), at(0)).await;
    rig.append([event("u1"), event("u2")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_all(3, at(1)).await;
    let completed: Vec<_> = claimed.iter().map(|done| Completed::new(done.lease.clone(), RunPart::Last)).collect();
    assert_eq!(worker.complete_many(&completed, at(2)).await, [Settled::Applied; 3]);
    // The worker did not hear the answer, and by now may hold the next delivery of the key.
    let next = worker.claim_event("e1", at(2)).await;
    assert_eq!(worker.complete_many(&completed, at(3)).await, [Settled::Gone; 3]);
    worker.expect_nothing(at(3)).await;
    assert_eq!(worker.complete(&next, at(4)).await, Settled::Applied);
    assert_eq!(ids(&worker.drain(at(5)).await), ["e2", "e3", "e4", "e5"]);
    rig.close().await;
}

/// A settlement that is repeated because its answer was lost changes nothing the second time.
pub async fn settling_twice_changes_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("again"), event("dead"), event("back")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut claimed = worker.claim_all(3, at(1)).await;
    claimed.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    let verdicts = [again(at(50)), Verdict::Release, buried()];
    let settlements: Vec<Settlement> =
        claimed.iter().zip(verdicts).map(|(done, verdict)| Settlement::new(done.lease.clone(), verdict)).collect();
    assert_eq!(worker.settle_many(&settlements, at(2)).await, [Settled::Applied; 3]);
    for _ in 0..2 {
        let answers = worker.settle_many(&settlements, at(20)).await;
        assert_eq!(answers[..2], [Settled::Lost, Settled::Lost], "these are there under no lease");
        assert!(matches!(answers[2], Settled::Lost | Settled::Gone), "{answers:?}");
    }
    let attempts: Vec<u32> = {
        let mut all = rig.deliveries(DeliveryQuery::all(), at(21)).await;
        all.sort_by(|a, b| a.id.event_id().cmp(b.id.event_id()));
        all.iter().map(|record| record.attempts).collect()
    };
    assert_eq!(attempts, [1, 0, 1]);
    assert_eq!(ids(&worker.claim_all(1, at(22)).await), ["back"]);
    worker.expect_nothing(at(49)).await;
    rig.close().await;
}

/// Settlements of one call are answered one by one, in their order.
pub async fn settlements_are_answered_in_their_order<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..9).map(|n| event(&format!("e{n}"))), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut claimed = worker.claim_all(9, at(1)).await;
    claimed.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    assert_eq!(worker.complete(&claimed[4], at(2)).await, Settled::Applied);
    let settlements: Vec<Settlement> = claimed
        .iter()
        .enumerate()
        .map(|(n, done)| {
            let mut lease = done.lease.clone();
            lease.token.claims += i64::from(n == 7);
            Settlement::new(lease, [again(at(100)), buried(), Verdict::Release][n % 3].clone())
        })
        .collect();
    let answers = worker.settle_many(&settlements, at(3)).await;
    let mut right = [Settled::Applied; 9];
    (right[4], right[7]) = (Settled::Gone, Settled::Lost);
    assert_eq!(answers, right);
    assert!(worker.settle_many(&[], at(4)).await.is_empty());
    rig.close().await;
}

/// An older attempt cannot write, not even one of the same session.
pub async fn an_older_attempt_is_fenced<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let old = worker.claim_all(2, at(1)).await;
    for stale in &old {
        assert_eq!(worker.settle(&stale.lease, Verdict::Release, at(1)).await, Settled::Applied);
    }
    let new = worker.claim_all(2, at(1)).await;
    for stale in &old {
        assert_eq!(worker.complete(stale, at(2)).await, Settled::Lost);
        for verdict in [again(at(3)), buried(), Verdict::Release] {
            assert_eq!(worker.settle(&stale.lease, verdict, at(2)).await, Settled::Lost);
        }
    }
    worker.expect_nothing(at(4)).await;
    for fresh in &new {
        assert_eq!(worker.complete(fresh, at(5)).await, Settled::Applied);
    }
    rig.close().await;
}

/// A completion that comes after the same attempt was settled changes nothing, and the other way round.
pub async fn an_attempt_ends_once<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("again"), event("back"), event("done")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut claimed = worker.claim_all(3, at(1)).await;
    claimed.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    let [again_, back, done] = &claimed[..] else { panic!("three deliveries") };
    worker.settle(&again_.lease, again(at(50)), at(2)).await;
    worker.settle(&back.lease, Verdict::Release, at(2)).await;
    worker.complete(done, at(2)).await;
    assert_eq!(worker.complete(again_, at(3)).await, Settled::Lost);
    assert_eq!(worker.complete(back, at(3)).await, Settled::Lost);
    for verdict in [again(at(3)), buried(), Verdict::Release] {
        assert_eq!(worker.settle(&done.lease, verdict, at(3)).await, Settled::Gone);
    }
    assert!(rig.deliveries(DeliveryQuery::all().status(DeliveryStatus::Dead), at(4)).await.is_empty());
    assert_eq!(ids(&worker.drain(at(60)).await).len(), 2);
    rig.close().await;
}
