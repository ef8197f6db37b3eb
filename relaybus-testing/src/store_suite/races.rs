//! Races: many workers and publishers on several instances at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relaybus::EventStore;
use relaybus::store::{Completed, Run, RunPart, Settled, StoreTransaction, Turn};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::StoreFactory;
use super::kit::{Draft, LOOKS, Rig, Worker, again, append, append_in, at, begin, event, ids};

/// How long racing workers may go without finishing anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// What runs where: fails when a key runs twice at once, or out of order, or when an event is handled twice.
struct Board {
    keys: Mutex<HashMap<String, KeyState>>,
    done: AtomicUsize,
    /// Nobody works before everybody has claimed: however the machine is loaded, the racers do meet.
    claimed: Barrier,
}

#[derive(Default)]
struct KeyState {
    runs_at: Option<usize>,
    done: Vec<String>,
}

impl Board {
    fn for_racers(racers: usize) -> Self {
        Self { keys: Mutex::default(), done: AtomicUsize::new(0), claimed: Barrier::new(racers) }
    }

    /// Unkeyed deliveries are their own key.
    fn place(run: &Run) -> String {
        let lease = &run.deliveries[0].lease;
        let key = lease.key.as_ref().map_or_else(|| format!("id {}", lease.event_id), |key| format!("key {key}"));
        format!("{} {key}", lease.handler)
    }

    /// The keys, also after a racer failed: the first failure is the one to read.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, KeyState>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, run: &Run, worker: usize) {
        let mut keys = self.lock();
        let state = keys.entry(Self::place(run)).or_default();
        let before = state.runs_at.replace(worker);
        assert_eq!(before, None, "{} runs at worker {worker} while it runs elsewhere", Self::place(run));
    }

    fn finish(&self, run: &Run, n: usize) {
        let mut keys = self.lock();
        let state = keys.get_mut(&Self::place(run)).expect("it was entered");
        state.done.push(run.deliveries[n].event.id.to_string());
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    fn leave(&self, run: &Run) {
        self.lock().get_mut(&Self::place(run)).expect("it was entered").runs_at = None;
    }

    fn order_of(&self, place: &str) -> Vec<String> {
        self.lock().get(place).map(|state| state.done.clone()).unwrap_or_default()
    }
}

/// Runs everything of a run strictly in order; what is left to complete is its last element.
async fn work_off<S: EventStore>(worker: &mut Worker<S>, board: &Board, run: &Run, number: usize) -> Completed {
    board.enter(run, number);
    let last = run.deliveries.len() - 1;
    for (n, claimed) in run.deliveries.iter().enumerate() {
        // Long enough for the others to be handed what they must not get.
        tokio::time::sleep(Duration::from_millis(1)).await;
        board.finish(run, n);
        if n < last {
            let answer = worker.complete_part(&claimed.lease, RunPart::Continues, at(1)).await;
            assert_eq!(answer, Settled::Applied, "an element of a live run");
        }
    }
    board.leave(run);
    Completed::new(run.deliveries[last].lease.clone(), RunPart::Last)
}

/// Waits for all tasks; the first that fails ends the others.
async fn all_of<T: 'static>(mut tasks: JoinSet<T>) -> Vec<T> {
    let mut outputs = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        outputs.push(ended.expect("a racing task"));
    }
    outputs
}

/// A worker that goes on until `total` deliveries are done by all together.
async fn race<S: EventStore>(
    store: Arc<S>,
    handlers: &'static [&'static str],
    board: Arc<Board>,
    number: usize,
    total: usize,
) {
    let mut worker = Worker::open(&store, handlers, at(1)).await;
    let mut finished: Vec<Completed> = Vec::new();
    let mut seen = 0;
    let mut met = false;
    let mut waited = tokio::time::Instant::now();
    while board.done.load(Ordering::SeqCst) < total || !finished.is_empty() {
        let Turn { completed, runs, .. } = worker.turn(&finished, 4, 3, at(1)).await.expect("a turn");
        assert!(completed.iter().all(|answer| *answer == Settled::Applied), "{completed:?}");
        finished.clear();
        if !std::mem::replace(&mut met, true) {
            board.claimed.wait().await;
        }
        if runs.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for run in &runs {
            finished.push(work_off(&mut worker, &board, run, number).await);
        }
        let done = board.done.load(Ordering::SeqCst);
        if done > seen {
            (seen, waited) = (done, tokio::time::Instant::now());
        }
        assert!(waited.elapsed() < PATIENCE, "worker {number} waits for {} deliveries", total - done);
    }
    worker.close(at(1)).await;
}

/// Twelve claimers on three instances, thirty keys: never a key in flight twice, never out of order, nothing twice.
pub async fn twelve_claimers_keep_thirty_keys_in_order<F: StoreFactory>(f: &F) {
    const RACERS: usize = 12;
    const KEYS: usize = 30;
    const EACH: usize = 12;
    let mut rig = Rig::open(f).await;
    let stores = [rig.store().clone(), rig.another().await, rig.another().await];
    for n in 0..EACH {
        let drafts = (0..KEYS).map(|key| event(&format!("e{n:02}-{key:02}")).key(&format!("k{key:02}")));
        append(&*stores[n % 3], drafts, at(0)).await;
    }
    let board = Arc::new(Board::for_racers(RACERS));
    let mut racers = JoinSet::new();
    for n in 0..RACERS {
        racers.spawn(race(stores[n % 3].clone(), &["h"], Arc::clone(&board), n, KEYS * EACH));
    }
    all_of(racers).await;
    for key in 0..KEYS {
        let right: Vec<String> = (0..EACH).map(|n| format!("e{n:02}-{key:02}")).collect();
        assert_eq!(board.order_of(&format!("h key k{key:02}")), right);
    }
    let statistics = rig.statistics(at(1)).await;
    assert_eq!((statistics.pending, statistics.processing, statistics.dead), (0, 0, 0));
    rig.close().await;
}

/// Publishers and claimers at once, with transactions that roll back: what was committed is handled once and in order.
pub async fn publishers_and_claimers_race<F: StoreFactory>(f: &F) {
    const EACH: usize = 40;
    const RACERS: usize = 4;
    let mut rig = Rig::open(f).await;
    let stores = [rig.store().clone(), rig.another().await, rig.another().await];
    let board = Arc::new(Board::for_racers(RACERS));
    let kept = (0..EACH).filter(|n| n % 5 != 3).count();
    let total = stores.len() * kept * 3;
    let mut tasks = JoinSet::new();
    for number in 0..RACERS {
        tasks.spawn(race(stores[number % 3].clone(), &["h", "i"], Arc::clone(&board), number, total));
    }
    for (publisher, store) in stores.iter().cloned().enumerate() {
        tasks.spawn(async move {
            for n in 0..EACH {
                let drafts = drafts_of(publisher, n);
                if n % 2 == 0 && n % 5 != 3 {
                    append(&*store, drafts, at(1)).await;
                    continue;
                }
                let mut tx = begin(&*store).await;
                append_in(&*store, &mut tx, drafts, at(1)).await;
                if n % 5 == 3 {
                    tx.rollback().await.expect("rollback");
                } else {
                    tx.commit().await.expect("commit");
                }
            }
        });
    }
    all_of(tasks).await;
    for publisher in 0..stores.len() {
        let right: Vec<String> = (0..EACH).filter(|n| n % 5 != 3).map(|n| format!("p{publisher}-{n:02}")).collect();
        assert_eq!(board.order_of(&format!("h key p{publisher}")), right);
        assert_eq!(board.order_of(&format!("i key p{publisher}")), right);
    }
    rig.close().await;
}

/// A keyed event for two handlers, and an unkeyed one.
fn drafts_of(publisher: usize, n: usize) -> [Draft; 2] {
    let keyed = event(&format!("p{publisher}-{n:02}")).key(&format!("p{publisher}")).to(&["h", "i"]);
    [keyed, event(&format!("u{publisher}-{n:02}"))]
}

/// An event that commits while the one before it completes is handed out: no wake-up falls between the two.
pub async fn a_follower_that_meets_a_completion_is_found<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    let other = rig.another().await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for round in 0..40 {
        let key = format!("k{round}");
        let (first, second) = (format!("first{round}"), format!("second{round}"));
        rig.append([event(&first).key(&key)], at(1)).await;
        let head = worker.claim_event(&first, at(1)).await;
        let follower = tokio::spawn({
            let (store, second) = (Arc::clone(&other), second.clone());
            async move { append(&*store, [event(&second).key(&key)], at(1)).await }
        });
        for _ in 0..round % 5 {
            tokio::task::yield_now().await;
        }
        assert_eq!(worker.complete(&head, at(1)).await, Settled::Applied);
        follower.await.expect("the append");
        let next = worker.claim_event(&second, at(1)).await;
        assert_eq!(worker.complete(&next, at(1)).await, Settled::Applied);
    }
    rig.close().await;
}

/// Workers that fail, release and leave all the time: every delivery completes once, its attempts counted.
pub async fn restless_workers_lose_nothing<F: StoreFactory>(f: &F) {
    const EVENTS: usize = 60;
    let mut rig = Rig::open(f).await;
    let stores = [rig.store().clone(), rig.another().await];
    rig.append((0..EVENTS).map(|n| event(&format!("e{n:02}")).key(&format!("k{}", n % 6))), at(0)).await;
    let completed = Arc::new(Mutex::new(Vec::<String>::new()));
    let mut tasks = JoinSet::new();
    for number in 0..4_usize {
        let (store, completed) = (stores[number % 2].clone(), Arc::clone(&completed));
        tasks.spawn(async move {
            let started = tokio::time::Instant::now();
            while completed.lock().unwrap().len() < EVENTS {
                assert!(started.elapsed() < PATIENCE, "worker {number} waits for the end");
                let mut worker = Worker::open(&store, &["h"], at(1)).await;
                for step in 0..4 {
                    for claimed in worker.claim(3, at(1)).await {
                        let before = usize::try_from(claimed.attempts).unwrap();
                        if before < (number + step) % 3 {
                            let answer = worker.settle(&claimed.lease, again(at(1)), at(1)).await;
                            assert_eq!(answer, Settled::Applied);
                        } else if (number + step) % 4 == 3 && before == 0 {
                            break; // what it holds goes back when it leaves
                        } else {
                            assert_eq!(worker.complete(&claimed, at(1)).await, Settled::Applied);
                            completed.lock().unwrap().push(claimed.event.id.to_string());
                        }
                    }
                }
                worker.close(at(1)).await;
            }
        });
    }
    all_of(tasks).await;
    let mut all = completed.lock().unwrap().clone();
    all.sort();
    assert_eq!(all, (0..EVENTS).map(|n| format!("e{n:02}")).collect::<Vec<_>>());
    rig.close().await;
}

/// Instances that start at the same time on fresh data all work.
pub async fn workers_that_start_together_all_work<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    rig.append((0..200).map(|n| event(&format!("e{n:03}"))), at(0)).await;
    let stores = [rig.store().clone(), rig.another().await, rig.another().await, rig.another().await];
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let store = stores[n % 4].clone();
        tasks.spawn(async move {
            store.setup().await.expect("setup");
            let mut worker = Worker::open(&store, &["h"], at(1)).await;
            let mut done = 0;
            for _ in 0..4 * LOOKS {
                let claimed = worker.claim(10, at(1)).await;
                done += claimed.len();
                for claimed in &claimed {
                    assert_eq!(worker.complete(claimed, at(1)).await, Settled::Applied);
                }
            }
            worker.close(at(1)).await;
            done
        });
    }
    let done: usize = all_of(tasks).await.into_iter().sum();
    let mut last = rig.worker(&["h"], at(1)).await;
    let rest = last.drain(at(1)).await;
    assert_eq!(done + ids(&rest).len(), 200);
    rig.close().await;
}
