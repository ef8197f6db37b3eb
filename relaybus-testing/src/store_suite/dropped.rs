//! Dropped futures: a call that is abandoned anywhere leaves no lock, no open transaction, and nothing half done.
//!
//! A dropped call may still have taken effect, now or a moment later, so the cases repeat it as the dispatcher does and
//! look at what all of it led to.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use relaybus::EventStore;
use relaybus::store::{
    AppendOutcome, ClaimRequest, Completed, DeliveryQuery, HandlerSlots, LeaseState, RunPart, Settled, Settlement,
    StoreTransaction, TransactionOptions, TurnRequest,
};

use super::StoreFactory;
use super::kit::{LEASE, Rig, again, append_in, at, batch, begin, event, handler, ids, sorted_ids};

/// How often a call is polled before it is dropped, at most.
const POLLS: usize = 12;

struct Polled<'f, F> {
    future: Pin<&'f mut F>,
    left: usize,
}

impl<F: Future> Future for Polled<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        match self.future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // The last poll was this one: there is nothing to wait for.
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Polls a call so many times and then drops it; its output if it ended before.
async fn polled<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let future = pin!(future);
    Polled { future, left: polls }.await
}

/// An append that is dropped has stored all of its events or none, and the next call works.
pub async fn a_dropped_append_is_whole_or_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    for polls in 0..POLLS {
        let names = [format!("a{polls}"), format!("b{polls}")];
        let drafts = || names.iter().map(|name| event(name).key("k").to(&["h", "i"]));
        let batch = batch(drafts(), at(0));
        drop(polled(rig.store().append_alone(&batch), polls).await);
        let outcomes = rig.append(drafts(), at(1)).await;
        let whole = outcomes == [AppendOutcome::Stored { deliveries: 2 }; 2];
        assert!(whole || outcomes == [AppendOutcome::Known { added: 0 }; 2], "dropped after {polls}: {outcomes:?}");
    }
    let mut worker = rig.worker(&["h"], at(2)).await;
    let done = worker.drain(at(2)).await;
    let right: Vec<String> = (0..POLLS).flat_map(|n| [format!("a{n}"), format!("b{n}")]).collect();
    assert_eq!(ids(&done), right);
    rig.close().await;
}

/// A transaction that is dropped while it opens, stores or commits holds up nobody.
pub async fn a_dropped_transaction_holds_up_nobody<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let options = TransactionOptions::default();
    for polls in 0..POLLS {
        drop(polled(rig.store().begin(&options), polls).await);
        {
            let mut tx = begin(&**rig.store()).await;
            drop(polled(append_in(&**rig.store(), &mut tx, [event("never").key("k")], at(0)), polls).await);
        }
        {
            let mut tx = begin(&**rig.store()).await;
            append_in(&**rig.store(), &mut tx, [event("never").key("k")], at(0)).await;
            drop(polled(tx.rollback(), polls).await);
        }
        rig.append([event(&format!("e{polls}")).key("k")], at(0)).await;
    }
    let mut worker = rig.worker(&["h"], at(1)).await;
    assert_eq!(ids(&worker.drain(at(1)).await), (0..POLLS).map(|n| format!("e{n}")).collect::<Vec<_>>());
    rig.close().await;
}

/// A commit that is dropped took effect or did not, for the delivery and the writes alike, and `inspect` tells which.
pub async fn a_dropped_commit_is_whole_or_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut worker = rig.worker(&["h"], at(0)).await;
    let mut answers = Vec::new();
    for polls in 0..POLLS {
        let name = format!("e{polls}");
        rig.append([event(&name)], at(1)).await;
        let claimed = worker.claim_event(&name, at(1)).await;
        let effect = format!("effect{polls}");
        let mut tx = begin(&**rig.store()).await;
        append_in(&**rig.store(), &mut tx, [event(&effect).to(&["x"])], at(1)).await;
        let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
        assert_eq!(rig.store().complete_in(&mut tx, &completed, at(1)).await.unwrap(), Settled::Applied);
        drop(polled(tx.commit(), polls).await);
        let state = rig.store().inspect(&claimed.lease).await.unwrap();
        assert_ne!(state, LeaseState::Lost, "nobody took it");
        answers.push((effect, state));
        if state == LeaseState::Held {
            assert_eq!(worker.complete(&claimed, at(1)).await, Settled::Applied, "dropped after {polls}");
        } else {
            worker.finish(&claimed.lease);
        }
    }
    worker.expect_nothing(at(2)).await;
    for (effect, state) in answers {
        let there = rig.delivery("x", &effect, at(2)).await.is_some();
        assert_eq!(there, state == LeaseState::Gone, "{effect} after a commit that was found {state:?}");
    }
    rig.close().await;
}

/// A completion inside a transaction that is dropped half way leaves the delivery as it was.
pub async fn a_dropped_complete_in_changes_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut worker = rig.worker(&["h"], at(0)).await;
    for polls in 0..POLLS {
        let name = format!("e{polls}");
        rig.append([event(&name).key("k"), event(&format!("next{polls}")).key("k")], at(1)).await;
        let claimed = worker.claim_event(&name, at(1)).await;
        let completed = Completed::new(claimed.lease.clone(), RunPart::Last);
        {
            let mut tx = begin(&**rig.store()).await;
            drop(polled(rig.store().complete_in(&mut tx, &completed, at(1)), polls).await);
        }
        worker.expect_nothing(at(1)).await;
        assert_eq!(rig.store().inspect(&claimed.lease).await.unwrap(), LeaseState::Held, "dropped after {polls}");
        assert_eq!(worker.complete(&claimed, at(1)).await, Settled::Applied);
        assert_eq!(ids(&worker.drain(at(1)).await), [format!("next{polls}")]);
    }
    rig.close().await;
}

/// What a dropped turn claimed is not lost: when its session ends in order, everything is there, uncharged.
pub async fn a_dropped_claim_loses_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    for polls in 0..POLLS {
        rig.append((0..4).map(|n| event(&format!("e{polls}-{n}"))), at(0)).await;
        rig.append((4..8).map(|n| event(&format!("e{polls}-{n}")).key("k")), at(0)).await;
        let mut worker = rig.worker(&["h"], at(1)).await;
        worker.turn(&[], 0, 0, at(1)).await.expect("a turn");
        let slots = [HandlerSlots::new(handler("h"), 10)];
        for _ in 0..3 {
            let mut request = TurnRequest::new(at(1)).claiming(ClaimRequest::new(&slots, 3, 2));
            request.renew = Some(at(1).after(LEASE));
            request.sweep = true;
            drop(polled(worker.send(&request), polls).await);
        }
        worker.close(at(2)).await;
        let mut heir = rig.worker(&["h"], at(2)).await;
        let done = heir.drain(at(2)).await;
        heir.close(at(2)).await;
        assert_eq!(sorted_ids(&done), (0..8).map(|n| format!("e{polls}-{n}")).collect::<Vec<_>>(), "after {polls}");
        assert!(done.iter().all(|claimed| claimed.attempts == 0), "nothing was started, nothing is charged");
    }
    rig.close().await;
}

/// A session goes on after a turn of it was dropped: what that turn claimed comes again or stays until the end.
pub async fn a_session_goes_on_after_a_dropped_turn<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut worker = rig.worker(&["h"], at(0)).await;
    let slots = [HandlerSlots::new(handler("h"), 10)];
    let mut all = Vec::new();
    for polls in 0..POLLS {
        rig.append([event(&format!("e{polls}")).key("k"), event(&format!("u{polls}"))], at(0)).await;
        let request = TurnRequest::new(at(1)).claiming(ClaimRequest::new(&slots, 3, 2));
        drop(polled(worker.send(&request), polls).await);
        all.extend(worker.drain(at(1)).await);
    }
    worker.close(at(2)).await;
    let mut heir = rig.worker(&["h"], at(2)).await;
    all.extend(heir.drain(at(2)).await);
    assert_eq!(all.len(), 2 * POLLS, "each of them once: {:?}", sorted_ids(&all));
    let keyed: Vec<&str> = ids(&all).into_iter().filter(|id| id.starts_with('e')).collect();
    assert_eq!(keyed, (0..POLLS).map(|n| format!("e{n}")).collect::<Vec<_>>());
    rig.close().await;
}

/// A completion that is repeated after its turn was dropped leads to one completion.
pub async fn a_dropped_completion_may_be_repeated<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut worker = rig.worker(&["h"], at(0)).await;
    for polls in 0..POLLS {
        rig.append([event(&format!("e{polls}")).key("k"), event(&format!("u{polls}"))], at(0)).await;
        let claimed = worker.claim_all(2, at(1)).await;
        let completed: Vec<_> =
            claimed.iter().map(|claimed| Completed::new(claimed.lease.clone(), RunPart::Last)).collect();
        drop(polled(worker.send(&TurnRequest::new(at(1)).completing(&completed)), polls).await);
        let answers = worker.complete_many(&completed, at(1)).await;
        let fine = answers == [Settled::Applied; 2] || answers == [Settled::Gone; 2];
        assert!(fine, "completions of a turn dropped after {polls}: {answers:?}");
    }
    worker.expect_nothing(at(2)).await;
    assert!(rig.deliveries(DeliveryQuery::all(), at(2)).await.len() <= 2 * POLLS, "records of a history at most");
    rig.close().await;
}

/// A settlement that is repeated after the first one was dropped charges one attempt.
pub async fn a_dropped_settlement_may_be_repeated<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut worker = rig.worker(&["h"], at(0)).await;
    for polls in 0..POLLS {
        let name = format!("e{polls}");
        rig.append([event(&name)], at(0)).await;
        let claimed = worker.claim_event(&name, at(1)).await;
        let settlement = [Settlement::new(claimed.lease.clone(), again(at(1)))];
        drop(polled(rig.store().clone().settle(worker.session(), &settlement, at(1)), polls).await);
        let answer = worker.settle_many(&settlement, at(1)).await[0];
        assert!(matches!(answer, Settled::Applied | Settled::Lost), "dropped after {polls}: {answer:?}");
        let retry = worker.claim_event(&name, at(2)).await;
        assert_eq!(retry.attempts, 1, "dropped after {polls}");
        assert_eq!(worker.complete(&retry, at(2)).await, Settled::Applied);
    }
    rig.close().await;
}

/// A session that is dropped while it opens or closes stops nobody.
pub async fn a_dropped_session_stops_nobody<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    for polls in 0..POLLS {
        let request =
            relaybus::store::SessionRequest::new(format!("dropped-{polls}"), vec![handler("h")], LEASE, at(0));
        drop(polled(rig.store().open_session(&request), polls).await);
        let mut worker = rig.worker(&["h"], at(0)).await;
        rig.append([event(&format!("e{polls}"))], at(0)).await;
        worker.turn(&[], 10, 1, at(0)).await.expect("a turn");
        let _ = polled(worker.close(at(0)), polls).await;
    }
    let now = super::kit::after_the_lease();
    let mut heir = rig.worker(&["h"], now).await;
    let done = heir.drain(now).await;
    assert_eq!(done.len(), POLLS, "whoever left them: {:?}", sorted_ids(&done));
    rig.close().await;
}
