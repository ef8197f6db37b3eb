//! Claiming: what a turn hands out, and what it leaves alone.

use relaybus::store::{ClaimRequest, Completed, DeliveryStatus, RunPart, Settled, TurnRequest, lane_of};

use super::StoreFactory;
use super::kit::{LOOKS, Rig, Worker, at, event, ids, sorted_ids};

/// A turn on an empty store answers with nothing.
pub async fn nothing_is_claimed_from_an_empty_store<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut worker = rig.worker(&["h"], at(0)).await;
    for second in 0..10 {
        let turn = worker.turn(&[], 10, 5, at(second)).await.unwrap();
        assert!(turn.runs.is_empty() && turn.completed.is_empty() && turn.taken_over == 0, "{turn:?}");
    }
    rig.close().await;
}

/// A turn hands out at most as many runs as asked for.
pub async fn at_most_the_limit_is_claimed<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..20).map(|n| event(&format!("e{n:02}"))), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut seen = Vec::new();
    for _ in 0..20 {
        // `turn` checks the bound of every single turn.
        let claimed = worker.claim(3, at(1)).await;
        seen.extend(claimed);
    }
    assert_eq!(sorted_ids(&seen), (0..20).map(|n| format!("e{n:02}")).collect::<Vec<_>>());
    rig.close().await;
}

/// A limit of zero, or no free slot, claims nothing.
pub async fn a_limit_of_zero_claims_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for _ in 0..LOOKS {
        assert!(worker.turn(&[], 0, 5, at(1)).await.unwrap().runs.is_empty());
    }
    let mut worker = worker.slots("h", 0);
    worker.expect_nothing(at(1)).await;
    let request = TurnRequest::new(at(1)).claiming(ClaimRequest::new(&[], 10, 5));
    assert!(worker.send(&request).await.unwrap().runs.is_empty());
    rig.close().await;
}

/// No turn hands out more runs of a handler than it has free slots.
pub async fn slots_of_a_handler_bound_its_runs<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..12).map(|n| event(&format!("e{n:02}")).to(&["a", "b"])), at(0)).await;
    let mut worker = rig.worker(&["a", "b"], at(1)).await.slots("a", 2).slots("b", 5);
    // `turn` checks the bound of every single turn.
    let claimed = worker.claim_all(24, at(1)).await;
    assert_eq!(claimed.iter().filter(|claimed| claimed.lease.handler == "a").count(), 12);
    rig.close().await;
}

/// Deliveries of handlers that were not asked for are neither handed out nor changed.
pub async fn only_handlers_asked_for_are_claimed<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").to(&["a", "b"]), event("e2").key("k").to(&["a", "b"])], at(0)).await;
    let mut worker = rig.worker(&["b"], at(1)).await;
    let done = worker.drain(at(1)).await;
    assert_eq!(sorted_ids(&done), ["e1", "e2"]);
    assert!(done.iter().all(|claimed| claimed.lease.handler == "b"));
    for id in ["e1", "e2"] {
        let left = rig.delivery("a", id, at(2)).await.expect("still there");
        assert_eq!((left.status, left.attempts, left.token), (DeliveryStatus::Pending, 0, None));
    }
    rig.close().await;
}

/// A session never gets a delivery again that it holds.
pub async fn a_claimed_delivery_is_not_handed_out_again<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let held = worker.claim_all(2, at(1)).await;
    for second in [1, 2, 10, 25, 40, 60, 80] {
        worker.expect_nothing(at(second)).await;
    }
    for claimed in &held {
        assert_eq!(worker.complete(claimed, at(90)).await, Settled::Applied);
    }
    rig.close().await;
}

/// Nobody gets a delivery that another live session holds, neither here nor in another instance.
pub async fn a_claimed_delivery_is_not_handed_to_another_worker<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    rig.append((0..8).map(|n| event(&format!("e{n}"))), at(0)).await;
    let mut first = rig.worker(&["h"], at(1)).await;
    let held = first.claim_all(8, at(1)).await;
    let other = rig.another().await;
    let mut neighbour = rig.worker(&["h"], at(2)).await;
    let mut elsewhere = Worker::open(&other, &["h"], at(2)).await;
    neighbour.expect_nothing(at(3)).await;
    elsewhere.expect_nothing(at(3)).await;
    for claimed in &held {
        assert_eq!(first.complete(claimed, at(4)).await, Settled::Applied);
    }
    neighbour.expect_nothing(at(5)).await;
    elsewhere.expect_nothing(at(5)).await;
    rig.close().await;
}

/// A turn that stopped at its limit says that more may be due, and a store without work says so in the end.
pub async fn more_is_said_while_more_is_due<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..5).map(|n| event(&format!("e{n}"))), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut claimed = 0;
    for _ in 0..5 * LOOKS {
        let turn = worker.turn(&[], 2, 1, at(1)).await.unwrap();
        claimed += turn.runs.len();
        if turn.runs.len() == 2 && claimed < 5 {
            assert!(turn.more, "the limit was reached with {} left", 5 - claimed);
        }
    }
    assert_eq!(claimed, 5);
    let turn = worker.turn(&[], 2, 1, at(1)).await.unwrap();
    assert!(!turn.more, "nothing is left");
    rig.close().await;
}

/// The first claim of a delivery counts no attempt and is not a redelivery.
pub async fn a_first_claim_has_no_attempts<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for claimed in worker.claim_all(2, at(1)).await {
        assert_eq!((claimed.attempts, claimed.redelivered()), (0, false), "{}", claimed.event.id);
    }
    rig.close().await;
}

/// The token has the lane of the key (or of the id without one) and the claims that ended before.
pub async fn the_token_names_lane_and_claims<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("order-1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for claims in 0..3 {
        for claimed in worker.claim_all(2, at(1)).await {
            let text = claimed.lease.key.as_ref().map_or(claimed.event.id.as_str(), |key| key.as_str());
            let token = claimed.lease.token;
            assert_eq!((token.lane, token.claims), (lane_of(text), claims), "the token of {text} is {token}");
            let released = worker.settle(&claimed.lease, relaybus::store::Verdict::Release, at(1)).await;
            assert_eq!(released, Settled::Applied);
        }
    }
    rig.close().await;
}

/// A worker that holds as much as its limit still gets more: running deliveries are no candidates.
pub async fn running_deliveries_do_not_use_up_the_limit<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..30).map(|n| event(&format!("e{n:02}"))), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut held = 0;
    for _ in 0..30 * LOOKS {
        held += worker.turn(&[], 5, 1, at(1)).await.unwrap().runs.len();
    }
    assert_eq!(held, 30, "slow handlers must not keep a worker from claiming");
    rig.close().await;
}

/// One turn completes and claims: the follower of a completed head may come with the same answer, and never without.
pub async fn one_turn_completes_and_claims<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k"), event("e2").key("k"), event("e3").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut head = worker.claim_event("e1", at(1)).await;
    for next in ["e2", "e3"] {
        worker.expect_nothing(at(1)).await;
        let turn = worker.turn(&[Completed::new(head.lease, RunPart::Last)], 1, 1, at(2)).await.unwrap();
        assert_eq!(turn.completed, [Settled::Applied]);
        let mut got: Vec<_> = turn.runs.into_iter().flat_map(|run| run.deliveries).collect();
        if got.is_empty() {
            got = worker.claim(1, at(2)).await;
        }
        assert_eq!(ids(&got), [next]);
        head = got.remove(0);
    }
    rig.close().await;
}

/// Completions of one turn are answered one by one, in their order, each by its own lease.
pub async fn completions_are_answered_in_their_order<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..40).map(|n| event(&format!("e{n:02}"))), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_all(40, at(1)).await;
    let mut completed: Vec<_> =
        claimed.iter().map(|claimed| Completed::new(claimed.lease.clone(), RunPart::Last)).collect();
    for stale in completed.iter_mut().step_by(4) {
        stale.lease.token.claims += 1;
    }
    let answers = worker.complete_many(&completed, at(2)).await;
    for (n, answer) in answers.iter().enumerate() {
        let right = if n % 4 == 0 { Settled::Lost } else { Settled::Applied };
        assert_eq!(*answer, right, "answer {n} of {answers:?}");
    }
    rig.close().await;
}

/// A worker that keeps taking turns handles everything that nobody else holds.
pub async fn a_claimer_that_keeps_on_drains_the_store<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let drafts = (0..300).map(|n| {
        let draft = event(&format!("e{n:03}")).to(&["a", "b"]);
        if n % 2 == 0 { draft } else { draft.key(&format!("k{}", n % 7)) }
    });
    rig.append(drafts, at(0)).await;
    let mut worker = rig.worker(&["a", "b"], at(1)).await;
    let done = worker.drain(at(1)).await;
    assert_eq!(done.len(), 600);
    let statistics = rig.statistics(at(2)).await;
    assert_eq!((statistics.pending, statistics.processing, statistics.dead), (0, 0, 0));
    rig.close().await;
}

/// Workers that know different handlers handle everything between them, however they share the rest of the work.
pub async fn workers_with_different_handlers_get_it_all<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    let other = rig.another().await;
    let mut workers = [
        rig.worker(&["a"], at(1)).await,
        Worker::open(&other, &["a", "b"], at(1)).await,
        rig.worker(&["b", "c"], at(1)).await,
    ];
    // Each takes its share of an empty store before there is work.
    for worker in &mut workers {
        worker.expect_nothing(at(1)).await;
    }
    let drafts = (0..60).map(|n| {
        let draft = event(&format!("e{n:02}")).to(&["a", "b", "c"]);
        if n % 2 == 0 { draft } else { draft.key(&format!("k{}", n % 5)) }
    });
    rig.append(drafts, at(1)).await;
    let mut done = Vec::new();
    for round in 0..4 {
        for worker in &mut workers {
            done.extend(worker.drain(at(2 + round)).await);
        }
    }
    for name in ["a", "b", "c"] {
        assert_eq!(done.iter().filter(|claimed| claimed.lease.handler == name).count(), 60, "deliveries of `{name}`");
    }
    rig.close().await;
}

/// A worker with other handlers that joins while the first is at work gets what was stored for it before, and its share of what
/// both handle.
pub async fn a_late_worker_with_other_handlers_gets_what_waits<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    let other = rig.another().await;
    let mut early = rig.worker(&["a", "b"], at(1)).await;
    // It takes what there is to own before there is work.
    early.expect_nothing(at(1)).await;
    let drafts = (0..60).map(|n| {
        let draft = event(&format!("e{n:02}")).to(&["a", "b", "c"]);
        if n % 2 == 0 { draft } else { draft.key(&format!("k{}", n % 5)) }
    });
    rig.append(drafts, at(1)).await;
    let mut done = early.claim(10, at(2)).await;
    let mut late = Worker::open(&other, &["b", "c"], at(2)).await;
    let first = late.claim(10, at(2)).await;
    for claimed in &done {
        assert_eq!(early.complete(claimed, at(2)).await, Settled::Applied);
    }
    for claimed in &first {
        assert_eq!(late.complete(claimed, at(2)).await, Settled::Applied);
    }
    done.extend(first);
    for round in 0..4 {
        done.extend(early.drain(at(3 + round)).await);
        let of_the_other = late.drain(at(3 + round)).await;
        assert!(of_the_other.iter().all(|claimed| claimed.lease.handler != "a"), "it has no handler `a`");
        done.extend(of_the_other);
    }
    for name in ["a", "b", "c"] {
        let of_it: Vec<_> = done.iter().filter(|claimed| claimed.lease.handler == name).cloned().collect();
        let mut events = sorted_ids(&of_it);
        events.dedup();
        assert_eq!((of_it.len(), events.len()), (60, 60), "deliveries of `{name}`, and their events");
    }
    rig.close().await;
}
