//! Random histories: whatever the operations and their order, the indexes agree with the events, tokens are new, keys
//! keep their order, and in the end nothing is left over.

use super::*;
use crate::store::{CommitError, StoreTransaction};

/// What the outside world knows.
struct World {
    store: MemoryStore,
    rng: fastrand::Rng,
    now: i64,
    published: usize,
    workers: Vec<Worker>,
    /// Claimed and not settled by the worker of that number, in the order of each run.
    claimed: Vec<(usize, Vec<Claimed>)>,
    tokens: HashSet<(EventId, HandlerId, String)>,
    /// The completions that were answered `Applied`, by the position of the event, which is never used twice.
    completed: HashSet<(i64, HandlerId)>,
}

const HANDLERS: [&str; 3] = ["f", "g", "h"];
const SEEDS: u64 = 40;
const STEPS: usize = 200;

impl World {
    fn new(seed: u64) -> Self {
        let store = MemoryStore::new().completion_history(seed.is_multiple_of(2));
        let workers = (0..3).map(|_| Worker::new(&store, 0)).collect();
        Self {
            store,
            rng: fastrand::Rng::with_seed(seed),
            now: 0,
            published: 0,
            workers,
            claimed: Vec::new(),
            tokens: HashSet::new(),
            completed: HashSet::new(),
        }
    }

    fn step(&mut self) {
        self.now += self.rng.i64(0..20);
        match self.rng.u8(0..20) {
            0..4 => self.publish(),
            4..10 => self.turn(),
            10..12 => self.complete_in(),
            12..16 => self.settle(),
            16 => self.replace_worker(),
            17 => self.requeue(),
            18 => assert!(done(self.store.purge(&self.purge_request(self.now - 200))).is_ok()),
            _ => self.now += self.rng.i64(0..100),
        }
        check(&self.store.shared.lock());
    }

    fn purge_request(&self, before: i64) -> PurgeRequest {
        PurgeRequest { completed_before: Some(at(before)), dead_before: Some(at(before)), ..PurgeRequest::new(3) }
    }

    fn publish(&mut self) {
        let mut tx = done(self.store.begin(&TransactionOptions::default())).unwrap();
        for _ in 0..self.rng.usize(1..4) {
            let is_new = self.published == 0 || self.rng.u8(0..4) > 0;
            let number = if is_new { self.published } else { self.rng.usize(0..self.published) };
            self.published += usize::from(is_new);
            let handlers: Vec<_> = HANDLERS.into_iter().filter(|_| self.rng.bool()).collect();
            // Numbers that are divisible by 4 have no key; a republished event keeps its own.
            let key = ["", "k", "l", "k"][number % 4];
            let due_at = self.now + self.rng.i64(-5..30);
            let event = event(&number.to_string(), Some(key).filter(|key| !key.is_empty()), &handlers, due_at);
            done(self.store.append(&mut tx, &AppendBatch::new(vec![event], at(self.now)))).unwrap();
        }
        if self.rng.u8(0..5) > 0 {
            done(tx.commit()).unwrap();
        }
    }

    fn turn(&mut self) {
        let index = self.rng.usize(0..self.workers.len());
        let mut completed = Vec::new();
        let mut finished = Vec::new();
        for (worker, run) in &mut self.claimed {
            if *worker == index && self.rng.bool() {
                let lease = run.remove(0).lease;
                let goes_on = !run.is_empty() && self.rng.u8(0..4) > 0;
                let part = if goes_on { RunPart::Continues } else { RunPart::Last };
                completed.push(Completed::new(lease.clone(), part));
                finished.push(lease);
                if !goes_on {
                    run.clear();
                }
            }
        }
        self.claimed.retain(|(_, run)| !run.is_empty());
        let slots: Vec<_> = HANDLERS.map(|name| HandlerSlots::new(handler(name), self.rng.usize(0..3))).into();
        let mut request = TurnRequest::new(at(self.now)).completing(&completed);
        request.claim = self.rng.bool().then(|| ClaimRequest::new(&slots, 4, self.rng.usize(0..5)));
        request.renew = self.rng.bool().then(|| at(self.now).after(LEASE));
        request.sweep = self.rng.bool();
        match self.workers[index].turn(&request) {
            Ok(turn) => {
                self.note_completions(&finished, &turn.completed);
                turn.runs.into_iter().for_each(|run| self.note_run(index, run));
            }
            Err(error) => {
                assert!(matches!(error, Error::SessionLost), "{error}");
                self.claimed.retain(|(worker, _)| *worker != index);
                self.workers[index] = Worker::new(&self.store, self.now);
            }
        }
    }

    fn note_completions(&mut self, leases: &[Lease], settled: &[Settled]) {
        for (lease, _) in leases.iter().zip(settled).filter(|(_, settled)| **settled == Settled::Applied) {
            assert!(self.completed.insert((lease.position, lease.handler.clone())), "a delivery completes once");
        }
    }

    fn note_run(&mut self, worker: usize, run: Run) {
        assert!(!run.deliveries.is_empty());
        let state = self.store.shared.lock();
        for claimed in &run.deliveries {
            let lease = &claimed.lease;
            assert!(lease.due_at <= at(self.now), "nothing is claimed before it is due");
            let token = (lease.event_id.clone(), lease.handler.clone(), lease.token.to_string());
            assert!(self.tokens.insert(token), "a token is given out once");
        }
        let first = &run.deliveries[0].lease;
        let queue = &state.queues[state.names[&first.handler]];
        if let Some(key) = &first.key {
            let chain = &queue.keys[key];
            assert!(chain.pending.keys().all(|&pending| pending > chain.run[0]), "the earliest of its key goes first");
            let positions: Vec<i64> = run.deliveries.iter().map(|claimed| claimed.lease.position).collect();
            assert_eq!(chain.run.to_vec(), positions, "one run of a key at a time");
        }
        drop(state);
        self.claimed.push((worker, run.deliveries.into_vec()));
    }

    fn complete_in(&mut self) {
        if self.claimed.is_empty() {
            return;
        }
        let index = self.rng.usize(0..self.claimed.len());
        let (worker, mut run) = self.claimed.swap_remove(index);
        let completed = Completed::new(run.remove(0).lease, RunPart::Continues);
        let mut tx = done(self.store.begin(&TransactionOptions::default())).unwrap();
        let settled = done(self.store.complete_in(&mut tx, &completed, at(self.now))).unwrap();
        if self.rng.u8(0..4) == 0 {
            // Somebody may take the session over before the commit.
            let other = self.rng.usize(0..self.workers.len());
            let mut sweep = TurnRequest::new(at(self.now));
            sweep.sweep = true;
            drop(self.workers[other].turn(&sweep));
        }
        match done(tx.commit()) {
            Ok(()) => {
                if settled == Settled::Applied {
                    self.note_completions(std::slice::from_ref(&completed.lease), &[settled]);
                }
            }
            Err(CommitError::RolledBack(Error::LeaseLost)) => return,
            Err(other) => panic!("{other:?}"),
        }
        if !run.is_empty() {
            self.claimed.push((worker, run));
        }
    }

    fn settle(&mut self) {
        if self.claimed.is_empty() {
            return;
        }
        let index = self.rng.usize(0..self.claimed.len());
        let (worker, run) = self.claimed.swap_remove(index);
        let verdict = match self.rng.u8(0..4) {
            0 => Verdict::Release,
            1 => Verdict::Bury { error: "{}".to_owned(), charge: self.rng.bool() },
            _ => failed(self.now + self.rng.i64(0..40)),
        };
        let settled = self.workers[worker].settle(&run[0], verdict.clone(), &run[1..], self.now);
        let again = self.workers[worker].settle(&run[0], verdict, &run[1..], self.now);
        assert!(again != Settled::Applied, "{settled:?}, then {again:?}");
    }

    fn replace_worker(&mut self) {
        let index = self.rng.usize(0..self.workers.len());
        self.claimed.retain(|(worker, _)| *worker != index);
        let gone = std::mem::replace(&mut self.workers[index], Worker::new(&self.store, self.now));
        if self.rng.bool() {
            done(self.store.close_session(gone.session, at(self.now))).unwrap();
        }
    }

    fn requeue(&mut self) {
        let query = DeliveryQuery::all().status(crate::store::DeliveryStatus::Dead).limit(2);
        let page = done(self.store.list_deliveries(&query, at(self.now))).unwrap();
        let ids: Vec<_> = page.deliveries.into_iter().map(|record| record.id).collect();
        let answers = done(self.store.requeue(&ids, at(self.now))).unwrap();
        assert!(answers.iter().all(|answer| *answer == Requeued::Requeued));
    }

    /// Everybody stops; one worker finishes what is left.
    fn drain(&mut self) {
        self.claimed.clear();
        self.now += 10_000;
        let mut last = Worker::new(&self.store, self.now);
        last.sweep(self.now);
        let slots: Vec<_> = HANDLERS.map(|name| HandlerSlots::new(handler(name), 100)).into();
        loop {
            let claim = TurnRequest::new(at(self.now)).claiming(ClaimRequest::new(&slots, 100, 3));
            let runs = last.turn(&claim).unwrap().runs;
            if runs.is_empty() {
                break;
            }
            for claimed in runs.iter().flat_map(|run| &run.deliveries) {
                assert_eq!(last.complete(claimed, RunPart::Continues, self.now), Settled::Applied);
                self.note_completions(std::slice::from_ref(&claimed.lease), &[Settled::Applied]);
            }
        }
    }
}

#[test]
fn random_histories_keep_the_invariants() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.drain();
        let statistics = done(world.store.statistics(at(world.now))).unwrap();
        assert_eq!((statistics.pending, statistics.processing), (0, 0), "seed {seed}");
        assert!(done(world.store.backlog()).unwrap().is_empty());
        while done(world.store.purge(&world.purge_request(i64::MAX))).unwrap().more {}
        let state = world.store.shared.lock();
        check(&state);
        assert!(state.events.is_empty(), "seed {seed}");
    }
}
