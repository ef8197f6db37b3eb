//! Time that jumps, forwards and back: nothing is lost, nothing is handed out twice, leases stay fenced.

use relaybus::Timestamp;
use relaybus::store::{ClaimRequest, HandlerSlots, Settled, TurnRequest, Verdict};

use super::StoreFactory;
use super::kit::{LEASE, Rig, after_the_lease, again, at, event, handler, ids, sorted_ids};

/// What became due before the clock went back waits until it is due again, and comes once.
pub async fn a_clock_that_goes_back_loses_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k"), event("e3").key("k")], at(1_000)).await;
    let mut worker = rig.worker(&["h"], at(1_000)).await;
    worker.expect_nothing(at(0)).await;
    worker.expect_nothing(at(999)).await;
    assert_eq!(sorted_ids(&worker.drain(at(1_000)).await), ["e1", "e2", "e3"]);
    worker.expect_nothing(at(0)).await;
    worker.expect_nothing(at(2_000)).await;
    rig.close().await;
}

/// A clock that goes back ends no lease: nobody else gets the delivery, and its worker completes it.
pub async fn a_clock_that_goes_back_keeps_leases<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1_000)).await;
    let held = worker.claim_all(2, at(1_000)).await;
    let mut rival = rig.worker(&["h"], at(10)).await;
    let slots = [HandlerSlots::new(handler("h"), 10)];
    for second in [10, 100, 500, 1_000] {
        rival.expect_nothing(at(second)).await;
        // Without a sweep: to this worker's clock the rival's session ended long ago.
        let turn = worker.send(&TurnRequest::new(at(second)).claiming(ClaimRequest::new(&slots, 10, 1))).await;
        assert!(turn.expect("a turn").runs.is_empty(), "at second {second}");
    }
    assert_eq!(rival.taken_over(), 0);
    for claimed in &held {
        assert_eq!(worker.complete(claimed, at(5)).await, Settled::Applied);
    }
    rig.close().await;
}

/// A renewal by a clock that went back does not shorten the lease.
pub async fn a_renewal_never_shortens_a_lease<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(5_000)).await;
    let held = worker.claim_event("e1", at(5_000)).await;
    let mut renewal = TurnRequest::new(at(0));
    renewal.renew = Some(at(0).after(LEASE));
    worker.send(&renewal).await.expect("a renewal");
    let mut rival = rig.worker(&["h"], at(5_000)).await;
    rival.expect_nothing(at(5_000)).await;
    assert_eq!(rival.taken_over(), 0, "its lease lasts until second 5030");
    assert_eq!(worker.complete(&held, at(5_000)).await, Settled::Applied);
    rig.close().await;
}

/// A worker whose clock jumps far ahead goes on with what it holds.
pub async fn a_clock_that_jumps_ahead_ends_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k"), event("later").due(at(1_000_000))], at(0)).await;
    let mut worker = rig.worker(&["h"], at(0)).await;
    let held = worker.claim_all(2, at(0)).await;
    let far = at(40_000_000);
    assert_eq!(ids(&worker.claim(10, far).await), ["later"]);
    for claimed in &held {
        assert_eq!(worker.complete(claimed, far).await, Settled::Applied);
    }
    rig.close().await;
}

/// A reschedule by a clock that went back counts from there.
pub async fn a_retry_follows_a_clock_that_went_back<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1_000)).await;
    let head = worker.claim_event("e1", at(1_000)).await;
    assert_eq!(worker.settle(&head.lease, again(at(110)), at(100)).await, Settled::Applied);
    worker.expect_nothing(at(109)).await;
    let done = worker.drain(at(110)).await;
    assert_eq!(ids(&done), ["e1", "e2"]);
    assert_eq!(done[0].attempts, 1);
    rig.close().await;
}

/// An event stored by a clock that is behind comes after what was stored before it.
pub async fn a_clock_that_is_behind_keeps_the_order<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("first").key("k")], at(100)).await;
    rig.append([event("second").key("k")], at(0)).await;
    rig.append([event("third").key("k")], at(50)).await;
    let mut worker = rig.worker(&["h"], at(60)).await;
    worker.expect_nothing(at(60)).await;
    assert_eq!(ids(&worker.drain(at(100)).await), ["first", "second", "third"]);
    rig.close().await;
}

/// After a takeover the dead worker's clock may be anywhere: its token does not match.
pub async fn a_fence_does_not_depend_on_clocks<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut stalled = rig.worker(&["h"], at(1)).await;
    let old = stalled.claim_event("e1", at(1)).await;
    let mut heir = rig.worker(&["h"], after_the_lease()).await;
    let new = heir.claim_event("e1", after_the_lease()).await;
    for now in [at(-100_000), at(2), at(100_000)] {
        let request = TurnRequest::new(now);
        assert!(stalled.send(&request).await.is_err(), "the session is lost at any time");
        assert_eq!(heir.complete(&old, now).await, Settled::Lost);
        assert_eq!(heir.settle(&old.lease, Verdict::Release, now).await, Settled::Lost);
    }
    assert_eq!(heir.complete(&new, at(3)).await, Settled::Applied);
    rig.close().await;
}

/// Times are kept to the microsecond, from before the epoch to the year 9999.
pub async fn times_are_kept_to_the_microsecond<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let times =
        [-62_000_000_000_000_000, -1, 0, 1, 1_767_225_600_123_457, 253_402_300_799_999_999].map(Timestamp::from_micros);
    for (n, time) in times.into_iter().enumerate() {
        let mut draft = event(&format!("e{n}")).due(at(0));
        draft.envelope.occurred_at = time;
        rig.append([draft], time).await;
    }
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut done = worker.claim_all(times.len(), at(1)).await;
    done.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    for (claimed, time) in done.iter().zip(times) {
        assert_eq!((claimed.event.occurred_at, claimed.stored_at), (time, time), "{}", claimed.event.id);
        let retry = Timestamp::from_micros(at(0).as_micros() + 17);
        assert_eq!(worker.settle(&claimed.lease, again(retry), at(1)).await, Settled::Applied);
        let record = rig.delivery("h", claimed.event.id.as_str(), at(1)).await.expect("it is listed");
        assert_eq!((record.due_at, record.stored_at), (retry, time));
    }
    rig.close().await;
}

/// A delivery that is due a microsecond later is not handed out, and is a microsecond later.
pub async fn due_means_due_to_the_microsecond<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let due = Timestamp::from_micros(at(10).as_micros() + 1);
    rig.append([event("e1").due(due)], at(0)).await;
    let mut worker = rig.worker(&["h"], at(10)).await;
    worker.expect_nothing(at(10)).await;
    assert_eq!(ids(&worker.claim(1, due).await), ["e1"]);
    rig.close().await;
}
