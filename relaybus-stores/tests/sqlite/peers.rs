//! Several stores on one file: setup at once, crossing writers, takeovers step by step, wake-ups between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use relaybus::EventStore;
use relaybus::store::{Completed, LeaseState, RunPart, Settled, StoreTransaction, TransactionOptions};
use relaybus_stores::SqliteStore;
use sqlx::Executor;

use crate::kit::{Fixture, LEASE, Worker, at, claimed, completions, fresh, open};

/// Long after a session of time 0 expired.
const LATER: i64 = 3_600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_may_set_up_a_new_file_at_once() {
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus.db");
        let mut tasks = Vec::new();
        for n in 0..8_u64 {
            let path = path.clone();
            tasks.push(tokio::spawn(async move {
                let store = SqliteStore::open(&path).await?;
                store.setup().await?;
                store.append_alone(&fresh(n * 100 + 1, 5, |_| None, at(0))).await?;
                store.setup().await?;
                store.verify().await?;
                store.close().await
            }));
        }
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        let store = open(&path).await;
        assert_eq!(store.statistics(at(0)).await.unwrap().pending, 40);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crossing_writers_lose_nothing_and_meet_no_lock_error() {
    let fixture = Fixture::new().await;
    let mut tasks = Vec::new();
    for n in 0..4_u64 {
        let store = fixture.peer().await;
        tasks.push(tokio::spawn(async move {
            for round in 0..50 {
                let from = 1_000_000 * (n + 1) + round * 10;
                store.append_alone(&fresh(from, 3, |n| Some(format!("k{}", n % 5)), at(0))).await.unwrap();
                let mut transaction = store.begin(&TransactionOptions::default()).await.unwrap();
                let batch = fresh(from + 5, 2, |_| None, at(0));
                store.append(&mut transaction, &batch).await.unwrap();
                if round % 2 == 0 { transaction.commit().await.unwrap() } else { transaction.rollback().await.unwrap() }
            }
        }));
    }
    let mut workers = Vec::new();
    for _ in 0..2 {
        let store = fixture.peer().await;
        workers.push(tokio::spawn(async move {
            let mut worker = Worker::new(&store, at(0)).await;
            let mut seen = Vec::new();
            for _ in 0..100 {
                seen.extend(worker.drain(10, at(1)).await);
            }
            seen
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut seen = Vec::new();
    for worker in workers {
        seen.extend(worker.await.unwrap());
    }
    seen.extend(Worker::new(&fixture.store, at(1)).await.drain(10, at(1)).await);
    let handed_out = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), handed_out, "nothing was handed out twice");
    assert_eq!(handed_out, 4 * 50 * 3 + 4 * 25 * 2);
}

#[tokio::test]
async fn a_session_that_wakes_up_during_its_takeover_claims_nothing_more() {
    let fixture = Fixture::new().await;
    let peer = fixture.peer().await;
    fixture.append(fresh(1, 6, |n| (n > 3).then(|| "k".to_owned()), at(0))).await;
    let mut stalled = Worker::new(&fixture.store, at(0)).await;
    let turn = stalled.turn(&[], 2, at(0)).await.unwrap();
    let old: Vec<_> = claimed(&turn.runs).into_iter().map(|claimed| claimed.lease.clone()).collect();
    assert_eq!(old.len(), 2);
    let mut heir = Worker::new(&peer, at(LATER)).await;
    let turn = heir.sweep(10, at(LATER)).await.unwrap();
    assert_eq!(turn.taken_over, 1);
    let taken: Vec<(String, u32, bool)> = claimed(&turn.runs)
        .into_iter()
        .map(|claimed| (claimed.event.id.to_string(), claimed.attempts, claimed.redelivered()))
        .collect();
    assert_eq!(taken.iter().filter(|(_, attempts, redelivered)| *attempts == 1 && *redelivered).count(), 2);
    assert_eq!(taken.len(), 6, "{taken:?}");
    // It wakes up with the time it had when it fell asleep.
    let done: Vec<_> = old.iter().map(|lease| Completed::new(lease.clone(), RunPart::Last)).collect();
    let error = stalled.turn(&done, 10, at(0)).await.expect_err("the session is lost");
    assert!(matches!(error, relaybus::Error::SessionLost), "{error}");
    for lease in &old {
        assert_eq!(peer.inspect(lease).await.unwrap(), LeaseState::Lost);
    }
    let settled = heir.turn(&completions(&turn.runs, &mut Vec::new()), 0, at(LATER)).await.unwrap();
    assert!(settled.completed.iter().all(|settled| *settled == Settled::Applied));
}

#[tokio::test]
async fn an_expired_session_that_nobody_took_over_goes_on() {
    let fixture = Fixture::new().await;
    fixture.append(fresh(1, 2, |_| None, at(0))).await;
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    let turn = worker.turn(&[], 2, at(0)).await.unwrap();
    let late = at(0).after(LEASE * 10);
    let mut request = relaybus::store::TurnRequest::new(late);
    let done = completions(&turn.runs, &mut Vec::new());
    request.completed = &done;
    request.renew = Some(late.after(LEASE));
    let turn = fixture.store.turn(&mut worker.session, &request).await.unwrap();
    assert_eq!(turn.completed, [Settled::Applied; 2]);
    let mut other = Worker::new(&fixture.peer().await, late).await;
    assert_eq!(other.sweep(1, late).await.unwrap().taken_over, 0, "it was renewed");
}

#[tokio::test]
async fn a_takeover_that_dies_midway_is_finished_by_the_next() {
    let fixture = Fixture::new().await;
    fixture.append(fresh(1, 3, |_| None, at(0))).await;
    let mut dead = Worker::new(&fixture.store, at(0)).await;
    dead.turn(&[], 3, at(0)).await.unwrap();
    // What the first step of a takeover leaves behind: the session is fenced, its rows are not free.
    let mut transaction = fixture.store.begin(&TransactionOptions::default()).await.unwrap();
    transaction.execute("UPDATE relaybus_sessions SET expires_at = -1").await.unwrap();
    transaction.commit().await.unwrap();
    let error = dead.turn(&[], 3, at(0)).await.expect_err("it is being ended");
    assert!(matches!(error, relaybus::Error::SessionLost), "{error}");
    let mut heir = Worker::new(&fixture.peer().await, at(0)).await;
    let turn = heir.sweep(10, at(0)).await.unwrap();
    assert_eq!((turn.taken_over, turn.runs.len()), (1, 3));
}

#[tokio::test]
async fn a_follower_that_came_late_runs_after_the_run_and_is_not_lost() {
    let fixture = Fixture::new().await;
    // Event 1 is stored for nobody yet; 2 to 4 wait in its key.
    let mut first = fresh(1, 1, |_| Some("k".to_owned()), at(0));
    first.events[0].handlers = Arc::from([]);
    fixture.append(first).await;
    fixture.append(fresh(2, 3, |_| Some("k".to_owned()), at(0))).await;
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    let turn = worker.turn(&[], 5, at(0)).await.unwrap();
    assert_eq!(claimed(&turn.runs).len(), 3);
    let mut late = fresh(1, 1, |_| Some("k".to_owned()), at(0));
    late.events[0].fresh_id = false;
    fixture.append(late).await;
    let mut seen = Vec::new();
    let done = completions(&turn.runs, &mut seen);
    for step in &done {
        let turn = worker.turn(std::slice::from_ref(step), 0, at(0)).await.unwrap();
        assert_eq!(turn.completed, [Settled::Applied]);
    }
    let rest = worker.drain(5, at(0)).await;
    assert_eq!(rest, [crate::kit::fresh_id(1).to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_wakes_the_watchers_of_other_stores_and_its_own() {
    let fixture = Fixture::new().await;
    let peer = fixture.peer().await;
    assert!(peer.capabilities().reports_commits);
    let counts = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    let watch = async |store: &SqliteStore, count: &Arc<AtomicUsize>| {
        let count = Arc::clone(count);
        store.watch(Arc::new(move || _ = count.fetch_add(1, Ordering::SeqCst))).await.unwrap().unwrap()
    };
    let own = watch(&fixture.store, &counts[0]).await;
    let other = watch(&peer, &counts[1]).await;
    // Through a connection of the application, which the stores know nothing of.
    let mut transaction = fixture.store.begin(&TransactionOptions::default()).await.unwrap();
    fixture.store.append(&mut transaction, &fresh(1, 1, |_| None, at(0))).await.unwrap();
    transaction.commit().await.unwrap();
    let started = Instant::now();
    while counts.iter().any(|count| count.load(Ordering::SeqCst) == 0) {
        assert!(started.elapsed() < Duration::from_secs(5), "{counts:?}");
        tokio::task::yield_now().await;
    }
    drop((own, other));
    // sleep: what was on its way when the watch ended gives no sign of having arrived.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let before: Vec<usize> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
    fixture.append(fresh(2, 1, |_| None, at(0))).await;
    // sleep: that nothing comes can only be waited for.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let after: Vec<usize> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
    assert_eq!(before, after, "a watch that was dropped is silent");
}
