//! Runs: several deliveries of one key in one claim, in order, and what becomes of the rest when one fails.

use relaybus::EventStore;
use relaybus::store::{Completed, LeaseState, Requeued, RunPart, Settled, Settlement, Verdict};

use super::StoreFactory;
use super::kit::{Draft, LOOKS, Rig, after_the_lease, again, at, buried, event, ids, sorted_ids};

fn of_key(names: &[&str]) -> Vec<Draft> {
    names.iter().map(|name| event(name).key("k")).collect()
}

/// A run has the due deliveries of its key in order, as many as asked for.
pub async fn a_run_has_the_next_deliveries_of_its_key<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3", "e4", "e5"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    for (n, claimed) in run.iter().enumerate() {
        let part = if n == 2 { RunPart::Last } else { RunPart::Continues };
        assert_eq!(worker.complete_part(&claimed.lease, part, at(2)).await, Settled::Applied);
    }
    worker.claim_run(3, &["e4", "e5"], at(3)).await;
    rig.close().await;
}

/// A run ends before the first delivery that is not due.
pub async fn a_run_ends_where_nothing_is_due<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k"), event("e2").key("k")], at(0)).await;
    rig.append([event("e3").key("k").due(at(50)), event("e4").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(10, &["e1", "e2"], at(1)).await;
    worker.complete_part(&run[0].lease, RunPart::Continues, at(2)).await;
    worker.complete(&run[1], at(2)).await;
    worker.expect_nothing(at(49)).await;
    assert_eq!(ids(&worker.drain(at(50)).await), ["e3", "e4"]);
    rig.close().await;
}

/// The limit of a claim counts runs, and unkeyed deliveries are runs of one.
pub async fn the_limit_counts_runs<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..40).map(|n| event(&format!("e{n:02}")).key(&format!("k{}", n % 4))), at(0)).await;
    rig.append((0..4).map(|n| event(&format!("u{n}"))), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut runs = Vec::new();
    for _ in 0..8 * LOOKS {
        runs.extend(worker.turn(&[], 2, 10, at(1)).await.expect("a turn").runs);
    }
    let mut lengths: Vec<usize> = runs.iter().map(|run| run.deliveries.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 1, 1, 1, 10, 10, 10, 10]);
    for run in runs.iter().filter(|run| run.deliveries.len() > 1) {
        assert!(ids(&run.deliveries).is_sorted(), "{:?}", ids(&run.deliveries));
    }
    rig.close().await;
}

/// Each handler has its own runs of a key.
pub async fn runs_are_of_one_handler<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((1..=3).map(|n| event(&format!("e{n}")).key("k").to(&["a", "b"])), at(0)).await;
    let mut worker = rig.worker(&["a", "b"], at(1)).await;
    let mut runs = worker.claim_runs(10, 5, at(1)).await;
    if runs.len() == 1 {
        runs.extend(worker.claim_runs(10, 5, at(1)).await);
    }
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| ids(&run.deliveries) == ["e1", "e2", "e3"]));
    rig.close().await;
}

/// Between two elements of a run nobody else gets anything of its key.
pub async fn a_run_keeps_its_key_until_it_ends<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3", "e4"]), at(0)).await;
    let other = rig.another().await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut rival = super::kit::Worker::open(&other, &["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    for (n, claimed) in run.iter().enumerate() {
        rival.expect_nothing(at(2)).await;
        worker.expect_nothing(at(2)).await;
        let part = if n == 2 { RunPart::Last } else { RunPart::Continues };
        assert_eq!(worker.complete_part(&claimed.lease, part, at(2)).await, Settled::Applied);
    }
    rival.close(at(3)).await;
    assert_eq!(ids(&worker.drain(at(3)).await), ["e4"]);
    rig.close().await;
}

/// Elements of a run may complete in one turn, in order.
pub async fn a_whole_run_may_complete_in_one_turn<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3", "e4"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    let parts = [RunPart::Continues, RunPart::Continues, RunPart::Last];
    let completed: Vec<_> =
        run.iter().zip(parts).map(|(claimed, part)| Completed::new(claimed.lease.clone(), part)).collect();
    assert_eq!(worker.complete_many(&completed, at(2)).await, [Settled::Applied; 3]);
    assert_eq!(worker.complete_many(&completed, at(3)).await, [Settled::Gone; 3]);
    assert_eq!(ids(&worker.drain(at(4)).await), ["e4"]);
    rig.close().await;
}

/// The completion of an element that is repeated after a lost answer does not end the run.
pub async fn a_repeated_completion_keeps_the_run<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    assert_eq!(worker.complete_part(&run[0].lease, RunPart::Continues, at(2)).await, Settled::Applied);
    assert_eq!(worker.complete_part(&run[0].lease, RunPart::Continues, at(2)).await, Settled::Gone);
    worker.expect_nothing(at(2)).await;
    assert_eq!(worker.complete_part(&run[1].lease, RunPart::Continues, at(3)).await, Settled::Applied);
    assert_eq!(worker.complete(&run[2], at(3)).await, Settled::Applied);
    worker.expect_nothing(at(4)).await;
    rig.close().await;
}

/// When the k-th element fails, the rest goes back uncharged and waits behind it.
pub async fn a_failed_element_gives_back_the_rest<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3", "e4"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(4, &["e1", "e2", "e3", "e4"], at(1)).await;
    assert_eq!(worker.complete_part(&run[0].lease, RunPart::Continues, at(2)).await, Settled::Applied);
    let mut settlement = Settlement::new(run[1].lease.clone(), again(at(60)));
    settlement.rest = vec![run[2].lease.clone(), run[3].lease.clone()];
    assert_eq!(worker.settle_many(&[settlement], at(3)).await, [Settled::Applied]);
    worker.expect_nothing(at(59)).await;
    let done = worker.drain(at(60)).await;
    assert_eq!(ids(&done), ["e2", "e3", "e4"]);
    let attempts: Vec<u32> = done.iter().map(|claimed| claimed.attempts).collect();
    assert_eq!(attempts, [1, 0, 0]);
    rig.close().await;
}

/// The tokens of the rest end with the settlement of the element before.
pub async fn tokens_of_the_rest_end<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    let mut settlement = Settlement::new(run[0].lease.clone(), again(at(10)));
    settlement.rest = vec![run[1].lease.clone(), run[2].lease.clone()];
    assert_eq!(worker.settle_many(&[settlement], at(2)).await, [Settled::Applied]);
    for stale in &run {
        assert_eq!(worker.complete_part(&stale.lease, RunPart::Continues, at(3)).await, Settled::Lost);
        assert_eq!(rig.store().inspect(&stale.lease).await.unwrap(), LeaseState::Lost);
    }
    assert_eq!(ids(&worker.drain(at(10)).await), ["e1", "e2", "e3"]);
    rig.close().await;
}

/// An element that is buried lets the rest go on at once.
pub async fn a_buried_element_lets_the_rest_go_on<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    let mut settlement = Settlement::new(run[0].lease.clone(), buried());
    settlement.rest = vec![run[1].lease.clone(), run[2].lease.clone()];
    assert_eq!(worker.settle_many(&[settlement], at(2)).await, [Settled::Applied]);
    let done = worker.drain(at(3)).await;
    assert_eq!(ids(&done), ["e2", "e3"]);
    assert!(done.iter().all(|claimed| claimed.attempts == 0));
    rig.close().await;
}

/// A run that is released goes back as a whole, uncharged.
pub async fn a_released_run_goes_back_uncharged<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    let mut settlement = Settlement::new(run[0].lease.clone(), Verdict::Release);
    settlement.rest = vec![run[1].lease.clone(), run[2].lease.clone()];
    assert_eq!(worker.settle_many(&[settlement], at(2)).await, [Settled::Applied]);
    let mut rival = rig.worker(&["h"], at(3)).await;
    worker.close(at(3)).await;
    let done = rival.drain(at(3)).await;
    assert_eq!(ids(&done), ["e1", "e2", "e3"]);
    assert!(done.iter().all(|claimed| claimed.attempts == 0));
    rig.close().await;
}

/// A settlement that comes too late does not give back what another holds.
pub async fn a_late_settlement_of_a_run_changes_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    let mut settlement = Settlement::new(run[0].lease.clone(), Verdict::Release);
    settlement.rest = vec![run[1].lease.clone(), run[2].lease.clone()];
    assert_eq!(worker.settle_many(std::slice::from_ref(&settlement), at(2)).await, [Settled::Applied]);
    let head = worker.claim(1, at(3)).await;
    assert_eq!(ids(&head), ["e1"]);
    assert_eq!(worker.settle_many(&[settlement], at(4)).await, [Settled::Lost]);
    worker.expect_nothing(at(5)).await;
    assert_eq!(worker.complete(&head[0], at(6)).await, Settled::Applied);
    assert_eq!(ids(&worker.drain(at(7)).await), ["e2", "e3"]);
    rig.close().await;
}

/// When a worker dies in a run, the element it may have been running is charged, and no follower.
pub async fn a_takeover_charges_only_the_head_of_a_run<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3", "e4"]), at(0)).await;
    rig.append([event("u1"), event("other").key("l")], at(0)).await;
    let mut dead = rig.worker(&["h"], at(1)).await;
    let mut held = Vec::new();
    for _ in 0..3 * LOOKS {
        held.extend(dead.turn(&[], 10, 4, at(1)).await.expect("a turn").runs);
    }
    assert_eq!(held.len(), 3, "three runs");
    let run = held.iter().find(|run| run.deliveries.len() == 4).expect("the run of four");
    assert_eq!(dead.complete_part(&run.deliveries[0].lease, RunPart::Continues, at(2)).await, Settled::Applied);
    dead.crash();
    let now = after_the_lease();
    let mut heir = rig.worker(&["h"], now).await;
    let mut done = heir.drain(now).await;
    assert_eq!(sorted_ids(&done), ["e2", "e3", "e4", "other", "u1"]);
    done.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    let attempts: Vec<u32> = done.iter().map(|claimed| claimed.attempts).collect();
    assert_eq!(attempts, [1, 0, 0, 1, 1], "of {:?}", ids(&done));
    rig.close().await;
}

/// A head that may have run before is claimed alone: if it kills its worker, no follower pays.
pub async fn a_redelivered_head_runs_alone<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(1, &["e1"], at(1)).await;
    worker.settle(&run[0].lease, again(at(5)), at(2)).await;
    let run = worker.claim_run(10, &["e1"], at(5)).await;
    assert!(run[0].redelivered());
    assert_eq!(worker.complete(&run[0], at(6)).await, Settled::Applied);
    worker.claim_run(10, &["e2", "e3"], at(7)).await;
    rig.close().await;
}

/// A run may end early: what was claimed behind the last element is handed out again, uncharged.
pub async fn a_run_may_end_early<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2", "e3"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(3, &["e1", "e2", "e3"], at(1)).await;
    assert_eq!(worker.complete_part(&run[0].lease, RunPart::Last, at(2)).await, Settled::Applied);
    let done = worker.drain(at(3)).await;
    assert_eq!(ids(&done), ["e2", "e3"]);
    assert!(done.iter().all(|claimed| claimed.attempts == 0));
    rig.close().await;
}

/// Events of the key that are stored while a run goes on come after it.
pub async fn events_stored_during_a_run_come_after_it<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e1", "e2"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let run = worker.claim_run(5, &["e1", "e2"], at(1)).await;
    rig.append(of_key(&["e3"]), at(2)).await;
    assert_eq!(worker.complete_part(&run[0].lease, RunPart::Continues, at(2)).await, Settled::Applied);
    rig.append(of_key(&["e4"]), at(2)).await;
    worker.expect_nothing(at(2)).await;
    assert_eq!(worker.complete(&run[1], at(3)).await, Settled::Applied);
    worker.claim_run(5, &["e3", "e4"], at(4)).await;
    rig.close().await;
}

/// A dead delivery that is requeued during a run of its key waits for the run.
pub async fn a_requeue_waits_for_a_run<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(of_key(&["e0", "e1", "e2", "e3"]), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let dead = worker.claim_event("e0", at(1)).await;
    worker.settle(&dead.lease, buried(), at(1)).await;
    let run = worker.claim_run(2, &["e1", "e2"], at(2)).await;
    assert_eq!(rig.store().requeue(&[dead.lease.delivery_id()], at(3)).await.unwrap(), [Requeued::Requeued]);
    worker.expect_nothing(at(3)).await;
    assert_eq!(worker.complete_part(&run[0].lease, RunPart::Continues, at(4)).await, Settled::Applied);
    worker.expect_nothing(at(4)).await;
    assert_eq!(worker.complete(&run[1], at(5)).await, Settled::Applied);
    assert_eq!(ids(&worker.drain(at(6)).await), ["e0", "e3"]);
    rig.close().await;
}
