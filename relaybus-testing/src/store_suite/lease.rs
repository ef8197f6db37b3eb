//! Leases: sessions that die, what happens to what they held, and sessions that only looked dead.

use relaybus::store::{
    ClaimRequest, Completed, DeliveryStatus, HandlerSlots, LeaseState, RunPart, Settled, Settlement, TurnRequest,
    Verdict,
};
use relaybus::{Error, EventStore};

use super::StoreFactory;
use super::kit::{LEASE, LOOKS, Rig, Worker, after_the_lease, again, at, event, handler, ids, sorted_ids};

/// A delivery of a worker that died is handed to another when the lease has ended, with one attempt charged.
pub async fn a_dead_workers_delivery_is_redelivered<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut dead = rig.worker(&["h"], at(1)).await;
    let held = dead.claim_all(2, at(1)).await;
    dead.crash();
    let other = rig.another().await;
    let mut waiting = Worker::open(&other, &["h"], at(2)).await;
    waiting.expect_nothing(at(25)).await;
    waiting.close(at(26)).await;
    let mut heir = Worker::open(&other, &["h"], after_the_lease()).await;
    let again = heir.claim_all(2, after_the_lease()).await;
    assert_eq!(heir.taken_over(), 1, "sessions taken over");
    for claimed in &again {
        assert_eq!((claimed.attempts, claimed.redelivered()), (1, true), "{}", claimed.event.id);
        let before = held.iter().find(|before| before.event.id == claimed.event.id).unwrap();
        assert!(claimed.lease.token.claims > before.lease.token.claims, "the token moves on");
        assert_eq!(heir.complete(claimed, after_the_lease()).await, Settled::Applied);
    }
    rig.close().await;
}

/// A session that renews is never taken over, however long a handler runs.
pub async fn a_renewing_session_is_never_taken_over<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut slow = rig.worker(&["h"], at(1)).await;
    let held = slow.claim_all(2, at(1)).await;
    let mut hungry = rig.worker(&["h"], at(1)).await;
    for second in (10..2_000).step_by(10) {
        let mut renewal = TurnRequest::new(at(second));
        renewal.renew = Some(at(second).after(LEASE));
        slow.send(&renewal).await.expect("a renewal");
        let turn = hungry.turn(&[], 10, 1, at(second)).await.expect("a turn");
        assert!(turn.runs.is_empty(), "handed out at second {second} though its worker lives");
    }
    assert_eq!(hungry.taken_over(), 0);
    for claimed in &held {
        assert_eq!(slow.complete(claimed, at(2_000)).await, Settled::Applied);
    }
    rig.close().await;
}

/// A worker that lost its session can neither claim nor complete nor settle, and disturbs nobody.
pub async fn a_worker_that_lost_its_session_changes_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k"), event("e3").key("k")], at(0)).await;
    let now = after_the_lease();
    let mut stalled = rig.worker(&["h"], at(1)).await;
    let old = stalled.claim_all(2, at(1)).await;
    let mut heir = rig.worker(&["h"], now).await;
    let new = heir.claim_all(2, now).await;
    rig.append([event("e4")], now).await;
    let completed: Vec<_> = old.iter().map(|old| Completed::new(old.lease.clone(), RunPart::Last)).collect();
    let turn = stalled.turn(&completed, 10, 1, now).await;
    assert!(matches!(turn, Err(Error::SessionLost)), "a turn of a lost session answers {turn:?}");
    for old in &old {
        let settlement = Settlement::new(old.lease.clone(), again(now));
        match rig.store().settle(stalled.session(), &[settlement], now).await {
            Ok(answers) => assert_eq!(answers, [Settled::Lost]),
            Err(error) => assert!(matches!(error, Error::SessionLost), "{error:?}"),
        }
        assert_eq!(rig.store().inspect(&old.lease).await.unwrap(), LeaseState::Lost);
    }
    stalled.close(now).await;
    for new in &new {
        let record = rig.delivery("h", new.event.id.as_str(), now).await.expect("it is listed");
        assert_eq!((record.status, record.attempts), (DeliveryStatus::Processing, 1));
        assert_eq!(heir.complete(new, now).await, Settled::Applied);
    }
    assert_eq!(sorted_ids(&heir.drain(now).await), ["e3", "e4"]);
    rig.close().await;
}

/// A worker that lost its session opens a new one and goes on.
pub async fn a_lost_session_is_replaced_by_a_new_one<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let now = after_the_lease();
    let mut stalled = rig.worker(&["h"], at(1)).await;
    stalled.claim_event("e1", at(1)).await;
    let mut heir = rig.worker(&["h"], now).await;
    let taken = heir.claim_event("e1", now).await;
    assert!(matches!(stalled.turn(&[], 1, 1, now).await, Err(Error::SessionLost)));
    stalled.crash();
    let mut reborn = rig.worker(&["h"], now).await;
    reborn.expect_nothing(now).await;
    assert_eq!(heir.complete(&taken, now).await, Settled::Applied);
    heir.close(now).await;
    rig.append([event("e2")], now).await;
    assert_eq!(ids(&reborn.drain(now).await), ["e2"]);
    rig.close().await;
}

/// A session whose time has passed, but that nobody took over, goes on: only a takeover ends it.
pub async fn an_expired_session_that_nobody_took_goes_on<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k"), event("e3").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let held = worker.claim_all(2, at(1)).await;
    let now = after_the_lease();
    for claimed in &held {
        assert_eq!(worker.complete(claimed, now).await, Settled::Applied);
    }
    let follower = worker.claim_event("e3", now).await;
    assert_eq!(follower.attempts, 0, "nothing crashed, so nothing is charged");
    let mut other = rig.worker(&["h"], now).await;
    other.expect_nothing(now).await;
    assert_eq!((other.taken_over(), worker.taken_over()), (0, 0), "the session was renewed");
    assert_eq!(worker.complete(&follower, now).await, Settled::Applied);
    rig.close().await;
}

/// A delivery that kills its workers is charged an attempt each time, so that it reaches its limit.
pub async fn a_poison_delivery_is_charged_every_time<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k"), event("e2").key("k")], at(0)).await;
    let mut now = at(1);
    for crashes in 0..4 {
        let mut victim = rig.worker(&["h"], now).await;
        let poison = victim.claim_event("e1", now).await;
        assert_eq!(poison.attempts, crashes);
        victim.crash();
        now = now.after(LEASE * 20);
    }
    let mut careful = rig.worker(&["h"], now).await;
    let poison = careful.claim_event("e1", now).await;
    let verdict = Verdict::Bury { error: super::kit::failure(), charge: false };
    assert_eq!(careful.settle(&poison.lease, verdict, now).await, Settled::Applied);
    let record = rig.delivery("h", "e1", now).await.expect("it is listed");
    assert_eq!((record.status, record.attempts), (DeliveryStatus::Dead, 4));
    let follower = careful.claim_event("e2", now).await;
    assert_eq!(follower.attempts, 0, "what waited behind the poison never ran");
    rig.close().await;
}

/// A takeover charges what the dead session may have been running, and nothing that had ended before.
pub async fn a_takeover_charges_only_what_was_held<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let names = ["done", "failed", "released", "held", "untouched"];
    rig.append(names.map(event), at(0)).await;
    let mut dead = rig.worker(&["h"], at(1)).await;
    let claimed = dead.claim_all(5, at(1)).await;
    let of = |name: &str| claimed.iter().find(|claimed| claimed.event.id == *name).unwrap().clone();
    assert_eq!(dead.settle(&of("untouched").lease, Verdict::Release, at(1)).await, Settled::Applied);
    assert_eq!(dead.settle(&of("failed").lease, again(at(3)), at(2)).await, Settled::Applied);
    assert_eq!(dead.settle(&of("released").lease, Verdict::Release, at(2)).await, Settled::Applied);
    assert_eq!(dead.complete(&of("done"), at(2)).await, Settled::Applied);
    dead.crash();
    let now = after_the_lease();
    let mut heir = rig.worker(&["h"], now).await;
    let mut left = heir.drain(now).await;
    left.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    let attempts: Vec<(&str, u32)> = left.iter().map(|claimed| (claimed.event.id.as_str(), claimed.attempts)).collect();
    assert_eq!(attempts, [("failed", 1), ("held", 1), ("released", 0), ("untouched", 0)]);
    rig.close().await;
}

/// Deliveries of handlers that the heir does not know are charged and freed like all others.
pub async fn a_takeover_frees_deliveries_of_unknown_handlers<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").to(&["a"]), event("e2").to(&["a"]).key("k")], at(0)).await;
    let mut dead = rig.worker(&["a"], at(1)).await;
    dead.claim_all(2, at(1)).await;
    dead.crash();
    let now = after_the_lease();
    let mut stranger = rig.worker(&["b"], now).await;
    stranger.expect_nothing(now).await;
    let mut heir = rig.worker(&["a"], now).await;
    for claimed in heir.claim_all(2, now).await {
        assert_eq!(claimed.attempts, 1, "{}", claimed.event.id);
        assert_eq!(heir.complete(&claimed, now).await, Settled::Applied);
    }
    assert_eq!(stranger.taken_over() + heir.taken_over(), 1, "sessions taken over");
    rig.close().await;
}

/// Workers that race for a dead session get its deliveries once, and charge them once.
pub async fn racing_heirs_charge_once<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    rig.append((0..12).map(|n| event(&format!("e{n:02}"))), at(0)).await;
    let mut dead = rig.worker(&["h"], at(1)).await;
    dead.claim_all(12, at(1)).await;
    dead.crash();
    let now = after_the_lease();
    let stores = [rig.store().clone(), rig.another().await, rig.another().await, rig.store().clone()];
    let mut heirs = Vec::new();
    for store in stores {
        heirs.push(tokio::spawn(async move {
            let mut heir = Worker::open(&store, &["h"], now).await;
            let done = heir.drain(now).await;
            let taken_over = heir.taken_over();
            heir.close(now).await;
            (done, taken_over)
        }));
    }
    let mut all = Vec::new();
    let mut taken_over = 0;
    for heir in heirs {
        let (done, took) = heir.await.expect("an heir");
        all.extend(done);
        taken_over += took;
    }
    // An heir may leave before the session was taken over by another: the last one finds what is left.
    let mut last = rig.worker(&["h"], now).await;
    all.extend(last.drain(now).await);
    assert_eq!(taken_over + last.taken_over(), 1, "sessions taken over");
    assert_eq!(sorted_ids(&all), (0..12).map(|n| format!("e{n:02}")).collect::<Vec<_>>());
    assert!(
        all.iter().all(|claimed| claimed.attempts == 1),
        "{:?}",
        all.iter().map(|c| c.attempts).collect::<Vec<_>>()
    );
    rig.close().await;
}

/// Closing a session hands back all it holds at once, without a charge, and ends its leases.
pub async fn closing_a_session_hands_back_uncharged<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k"), event("e3").key("k"), event("e4").key("k")], at(0)).await;
    let mut leaving = rig.worker(&["h"], at(1)).await;
    let mut held: Vec<_> = leaving.claim_runs(10, 3, at(1)).await.into_iter().flat_map(|run| run.deliveries).collect();
    held.extend(leaving.claim_runs(10, 3, at(1)).await.into_iter().flat_map(|run| run.deliveries));
    assert_eq!(sorted_ids(&held), ["e1", "e2", "e3", "e4"]);
    leaving.close(at(2)).await;
    let mut heir = rig.worker(&["h"], at(3)).await;
    let done = heir.drain(at(3)).await;
    assert_eq!(heir.taken_over(), 0, "a closed session is not taken over");
    assert_eq!(sorted_ids(&done), ["e1", "e2", "e3", "e4"]);
    assert!(done.iter().all(|claimed| claimed.attempts == 0), "nothing is charged");
    let order: Vec<_> = ids(&done).into_iter().filter(|id| *id != "e1").collect();
    assert_eq!(order, ["e2", "e3", "e4"]);
    rig.close().await;
}

/// Leases of a closed session are fenced.
pub async fn leases_of_a_closed_session_are_fenced<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut leaving = rig.worker(&["h"], at(1)).await;
    let old = leaving.claim_all(2, at(1)).await;
    leaving.close(at(2)).await;
    let mut heir = rig.worker(&["h"], at(3)).await;
    let new = heir.claim_all(2, at(3)).await;
    for old in &old {
        assert_eq!(rig.store().inspect(&old.lease).await.unwrap(), LeaseState::Lost);
        assert_eq!(heir.complete(old, at(4)).await, Settled::Lost);
    }
    for new in &new {
        assert_eq!(heir.complete(new, at(5)).await, Settled::Applied);
    }
    rig.close().await;
}

/// A session that never claimed anything can be closed, and so can one whose deliveries are all done.
pub async fn an_idle_session_closes<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.worker(&["h"], at(0)).await.close(at(0)).await;
    rig.worker(&[], at(0)).await.close(at(1)).await;
    rig.append([event("e1")], at(1)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    assert_eq!(ids(&worker.drain(at(1)).await), ["e1"]);
    worker.close(at(2)).await;
    rig.close().await;
}

/// A dead session that held nothing is forgotten, and stands in nobody's way.
pub async fn a_dead_session_without_work_is_forgotten<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    for _ in 0..5 {
        rig.worker(&["h", "i"], at(0)).await.crash();
    }
    let now = after_the_lease();
    rig.append((0..40).map(|n| event(&format!("e{n}"))), now).await;
    let mut worker = rig.worker(&["h"], now).await;
    assert_eq!(worker.drain(now).await.len(), 40);
    rig.close().await;
}

/// Turns without a sweep find what is due as well; only dead sessions may wait for a sweep.
pub async fn a_turn_without_a_sweep_claims<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut worker = rig.worker(&["h"], at(0)).await;
    worker.expect_nothing(at(0)).await; // takes what a store lets it own
    rig.append((0..5).map(|n| event(&format!("e{n}"))), at(1)).await;
    let slots = [HandlerSlots::new(handler("h"), 10)];
    let mut found = 0;
    for _ in 0..LOOKS {
        let request = TurnRequest::new(at(1)).claiming(ClaimRequest::new(&slots, 10, 1));
        found += worker.send(&request).await.expect("a turn").runs.len();
    }
    assert_eq!(found, 5);
    rig.close().await;
}
